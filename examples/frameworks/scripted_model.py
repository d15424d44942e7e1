"""A model endpoint on this machine that answers every request with one text, in the form of the API that is called."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANSWER = "Thursday suits us."
USAGE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}


def chat_completion() -> dict[str, Any]:
    message = {"role": "assistant", "content": ANSWER}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def response() -> dict[str, Any]:
    text = {"type": "output_text", "text": ANSWER, "annotations": []}
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    fields = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
    more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": USAGE | details}
    return fields | more | {"output": [message]}


def gemini_content() -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": ANSWER}]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "modelVersion": "m"}


def claude_message() -> dict[str, Any]:
    fields = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    return fields | {"stop_reason": "end_turn", "content": [{"type": "text", "text": ANSWER}], "usage": USAGE}


def claude_events() -> list[tuple[str, dict[str, Any]]]:
    empty = claude_message() | {"content": [], "stop_reason": None}
    delta = {"type": "text_delta", "text": ANSWER}
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    return [
        ("message_start", {"message": empty}),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": stop, "usage": USAGE}),
        ("message_stop", {}),
    ]


class ModelHandler(BaseHTTPRequestHandler):
    """Answers by path, and keeps what it was asked."""

    prompts: list[str]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        self.prompts.append(body)
        if self.path.startswith("/v1/messages"):
            self.answer_claude(is_stream='"stream":true' in body.replace(" ", ""))
        elif "generateContent" in self.path:
            self.answer_json(gemini_content())
        elif self.path.endswith("/responses"):
            self.answer_json(response())
        elif self.path.endswith("/chat/completions"):
            self.answer_json(chat_completion())
        else:
            self.send_error(404)

    def answer_json(self, value: dict[str, Any]) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def answer_claude(self, is_stream: bool) -> None:
        if not is_stream:
            return self.answer_json(claude_message())
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for name, fields in claude_events():
            self.wfile.write(f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test prints what it needs."""


@contextmanager
def scripted_model() -> Iterator[tuple[str, list[str]]]:
    """The URL of the endpoint, and the bodies of the requests so far."""
    prompts: list[str] = []
    handler = type("Handler", (ModelHandler,), {"prompts": prompts})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", prompts
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
