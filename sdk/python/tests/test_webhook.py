"""The endpoint: the hub posts to it, signatures are checked on the raw body before anything is parsed (SDK-10)."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio
import anyio.from_thread
import pytest
from actors import WAIT_S
from conftest import MakeAgent
from standardwebhooks import Webhook

from chorus_sdk import Agent, Delivery, EndpointApp, InvalidInput, Message, SignatureInvalid, verify_signature
from chorus_sdk.channel import RoomStream
from chorus_sdk.types import ChannelRow, ReceiverReply

pytestmark = pytest.mark.anyio
SECRET = "whsec_" + base64.b64encode(b"endpoint-secret-of-the-tests-32b").decode()
NOW = 1_800_000_000.0
ENVELOPE = {"chorus_version": "0.4", "sender_id": "alice@chorus", "original_text": "hi", "sender_culture": "en"}


def sign(body: bytes, at: float = NOW) -> dict[str, str]:
    """Signed by the reference library, not by our own code."""
    signature = Webhook(SECRET).sign("msg_1", datetime.fromtimestamp(at, UTC), body.decode())
    return {"webhook-id": "msg_1", "webhook-timestamp": str(int(at)), "webhook-signature": signature}


async def test_signatures_of_the_reference_library_are_accepted() -> None:
    body = json.dumps({"envelope": ENVELOPE}).encode()
    verify_signature(SECRET, sign(body), body, clock=lambda: NOW)
    upper = {name.title(): value for name, value in sign(body).items()}
    verify_signature(SECRET, upper, body, clock=lambda: NOW + 299)
    rotated = sign(body) | {"webhook-signature": f"v1,b2xk {sign(body)['webhook-signature']}"}
    verify_signature(SECRET, rotated, body, clock=lambda: NOW - 299)


@pytest.mark.parametrize("wrong", ["body", "id", "signature", "version", "old", "future", "missing", "time"])
async def test_other_requests_are_refused(wrong: str) -> None:
    body = b'{"envelope": {}}'
    headers = sign(body)
    clock = NOW
    if wrong == "body":
        body = b'{"envelope":  {}}'
    elif wrong == "id":
        headers["webhook-id"] = "msg_2"
    elif wrong == "signature":
        headers["webhook-signature"] = "v1," + base64.b64encode(bytes(32)).decode()
    elif wrong == "version":
        headers["webhook-signature"] = headers["webhook-signature"].replace("v1,", "v2,")
    elif wrong == "missing":
        del headers["webhook-signature"]
    elif wrong == "time":
        headers["webhook-timestamp"] = "1e9"
    else:
        clock += 301 if wrong == "old" else -301
    with pytest.raises(SignatureInvalid):
        verify_signature(SECRET, headers, body, clock=lambda: clock)


async def post(app: EndpointApp, body: bytes, headers: Mapping[str, str]) -> tuple[int, ReceiverReply]:
    """One request as an ASGI server makes it, in two parts."""
    parts = [{"body": body[:5], "more_body": True}, {"body": body[5:], "more_body": False}]
    sent: list[Mapping[str, Any]] = []

    async def receive() -> Mapping[str, Any]:
        return {"type": "http.request", **parts.pop(0)}

    async def send(event: Mapping[str, Any]) -> None:
        sent.append(event)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await app({"type": "http", "method": "POST", "headers": raw}, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


async def test_the_handlers_answer_and_a_repeated_turn_gets_the_first_answer() -> None:
    agent = Agent("bob@chorus", "ca_key", "http://127.0.0.1:9")
    app = EndpointApp(agent, SECRET, clock=lambda: NOW)
    handled: list[str] = []

    @agent.on_message
    async def handle(message: Message) -> None:
        handled.append(message.text)
        if message.text == "no":
            await message.fail("NOT_TODAY")

    for text, expected in [("yes", {"status": "ok"}), ("no", {"status": "error", "error_code": "NOT_TODAY"})]:
        envelope = ENVELOPE | {"original_text": text, "conversation_id": text, "turn_number": 1}
        body = json.dumps({"envelope": envelope}).encode()
        for _ in range(2):
            assert await post(app, body, sign(body)) == (200, expected)
    assert handled == ["yes", "no"]
    unsigned = json.dumps({"envelope": ENVELOPE}).encode()
    assert (await post(app, unsigned, {}))[0] == 401
    assert (await post(app, b"not json", sign(b"not json")))[0] == 400
    old = json.dumps({"envelope": ENVELOPE | {"chorus_version": "0.1"}}).encode()
    assert (await post(app, old, sign(old)))[1].get("error_code") == "UNSUPPORTED_VERSION"
    large = b" " * 600_000
    assert (await post(app, large, sign(large)))[0] == 413
    assert handled == ["yes", "no"]
    with pytest.raises(InvalidInput):
        EndpointApp(agent, None)
    await agent.close()


@contextmanager
def served(app: EndpointApp, portal: anyio.from_thread.BlockingPortal) -> Iterator[str]:
    """The endpoint behind a plain HTTP server."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, reply = portal.call(app.answer_post, headers, body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(reply).encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/receive"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_the_hub_posts_and_the_sender_hears_the_answer(make_agent: MakeAgent) -> None:
    alice = await make_agent("alice")
    handled: list[tuple[str, str]] = []
    async with anyio.from_thread.BlockingPortal() as portal:
        placeholder = Agent("x@chorus", "ca_none", alice.hub_url)
        app = EndpointApp(placeholder, SECRET)

        @placeholder.on_message
        async def handle(message: Message) -> None:
            handled.append((message.text, message.trace_id))

        with served(app, portal) as url:
            bob = await make_agent("bob", endpoint=url, endpoint_secret=SECRET)
            sent = await alice.send(bob.agent_id, "by endpoint")
            assert (sent.delivery, sent.response) == ("delivered", {"status": "ok"})
            await bob.create_endpoint_secret()  # from now on the hub signs with another secret
            refused = await alice.send(bob.agent_id, "signed by another secret")
            assert refused.response is not None and refused.response.get("error_code") == "SDK_SIGNATURE_INVALID"
        await placeholder.close()
    assert handled == [("by endpoint", sent.trace_id)]


async def test_a_signed_delivery_of_a_channel_is_answered(make_agent: MakeAgent) -> None:
    alice = await make_agent("alice")
    remote = Agent("remote@elsewhere", "ca_none", alice.hub_url)

    @remote.on_delivery
    async def answer(delivery: Delivery) -> None:
        await delivery.callback.message(f"{delivery.message['content']} yourself")

    room = await alice.create_channel("room")
    rows = room.stream()
    await rows.opened()
    async with anyio.from_thread.BlockingPortal() as portal:
        with served(EndpointApp(remote, SECRET), portal) as url:
            await room.add_connection(url, "remote", signing_secret=SECRET)
            await room.post("@remote hello")
            with anyio.fail_after(WAIT_S):
                said = [row async for row in take_until(rows, "remote")]
    await rows.close()
    await remote.close()
    assert said[-1].get("content") == "@remote hello yourself"


async def take_until(rows: RoomStream, sender: str) -> AsyncIterator[ChannelRow]:
    async for row in rows:
        yield row
        if row["type"] == "message" and row.get("sender") == sender:
            return
