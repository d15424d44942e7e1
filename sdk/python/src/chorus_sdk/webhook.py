"""The endpoint of an agent: an ASGI app that checks who posts, calls the handlers and answers the hub (SDK-10)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from . import limits
from .agent import CHORUS_VERSION, Agent
from .channel import build_delivery
from .core import as_object
from .errors import InvalidInput, SignatureInvalid
from .listener import call_handler
from .message import Message
from .types import ChannelDelivery, Envelope, MessageEvent, ReceiverReply

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
WallClock = Callable[[], float]
INVALID_ENVELOPE = "INVALID_ENVELOPE"
UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"


def verify_signature(secret: str, headers: Mapping[str, str], body: bytes, *, clock: WallClock = time.time) -> None:
    """Checks the Standard Webhooks headers of a request over its raw body; raises `SignatureInvalid`.

    Call it before anything of the body is parsed. A signature is good for five minutes around its time."""
    lower = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp = lower.get("webhook-id"), lower.get("webhook-timestamp")
    given = lower.get("webhook-signature")
    if not message_id or not timestamp or not given:
        raise SignatureInvalid("the request is not signed")
    if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > 12:
        raise SignatureInvalid("the time of the signature is not a number")
    if abs(clock() - int(timestamp)) > limits.WEBHOOK_TOLERANCE_S:
        raise SignatureInvalid("the signature is too old, or from the future")
    signed = f"{message_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.new(_decode_secret(secret), signed, hashlib.sha256).digest()).decode()
    is_signed = False
    for one in given.split():
        version, _, signature = one.partition(",")
        is_signed |= version == "v1" and hmac.compare_digest(expected.encode(), signature.encode())
    if not is_signed:
        raise SignatureInvalid("the signature is not of the hub")


def _decode_secret(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("an endpoint secret is whsec_ and base64") from None


class PostedMessage(Message):
    """A message that came by endpoint: its answer is the response to the request."""

    async def _respond(self, reply: ReceiverReply) -> None:
        self._answered = reply


class EndpointApp:
    """An ASGI app for an agent's endpoint: `app = EndpointApp(agent, secret)`, then `uvicorn module:app`.

    It answers messages (`{"envelope"}`) with the handler of `@agent.on_message` and channel deliveries with that of
    `@agent.on_delivery`."""

    def __init__(
        self,
        agent: Agent,
        secret: str | None,
        *,
        allow_unsigned: bool = False,
        clock: WallClock = time.time,
    ) -> None:
        if secret is None and not allow_unsigned:
            raise InvalidInput("an endpoint without a secret takes posts of every sender: set allow_unsigned=True")
        if secret is not None:
            _decode_secret(secret)
        self._agent = agent
        self._secret = secret
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _answer_lifespan(receive, send)
        elif scope["type"] == "http":
            status, reply = await self._answer_request(scope, receive)
            body = json.dumps(reply).encode()
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
            ]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    async def _answer_request(self, scope: Scope, receive: Receive) -> tuple[int, ReceiverReply]:
        if scope["method"] != "POST":
            return 405, _refusal(INVALID_ENVELOPE, "post an envelope here")
        body = await _read_body(receive)
        if body is None:
            return 413, _refusal(INVALID_ENVELOPE, "the request is too large")
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        return await self.answer_post(headers, body)

    async def answer_post(self, headers: Mapping[str, str], body: bytes) -> tuple[int, ReceiverReply]:
        """The status and the reply for one post, for web frameworks without ASGI. Names of headers are lower case."""
        if self._secret is not None:
            try:
                verify_signature(self._secret, headers, body, clock=self._clock)
            except SignatureInvalid as error:
                return 401, _refusal(error.code, error.message)
        try:
            parsed = as_object(json.loads(body))
        except ValueError:
            parsed = None
        if parsed is None:
            return 400, _refusal(INVALID_ENVELOPE, "the body is not a JSON object")
        if "envelope" in parsed:
            return await self._answer_envelope(parsed["envelope"], headers.get("webhook-id", ""))
        return await self._answer_delivery(cast(ChannelDelivery, parsed))

    async def _answer_envelope(self, envelope: object, trace_id: str) -> tuple[int, ReceiverReply]:
        fault = find_envelope_fault(envelope)
        if fault is not None:
            return 400, fault
        checked = cast(Envelope, envelope)
        timestamp = datetime.fromtimestamp(self._clock(), UTC).isoformat()
        event: MessageEvent = {
            "trace_id": trace_id,
            "sender_id": checked["sender_id"],
            "envelope": checked,
            "timestamp": timestamp,
        }
        message = PostedMessage(self._agent, event, None)
        reply = await self._agent.decide_reply(message)
        return 200, message.answered or reply or {"status": "ok"}

    async def _answer_delivery(self, body: ChannelDelivery) -> tuple[int, ReceiverReply]:
        delivery = build_delivery(self._agent._client, body)  # pyright: ignore[reportPrivateUsage]
        handler = self._agent._delivery_handler  # pyright: ignore[reportPrivateUsage]
        if delivery is None or handler is None:
            return 400, _refusal(INVALID_ENVELOPE, "the body is neither an envelope nor a delivery")
        await call_handler(handler, delivery)
        return 200, {"status": "ok"}


def find_envelope_fault(envelope: object) -> ReceiverReply | None:
    """The refusal of an envelope that the handlers cannot take; the hub checks the rest."""
    fields = as_object(envelope)
    if fields is None:
        return _refusal(INVALID_ENVELOPE, "the envelope is not an object")
    if fields.get("chorus_version") != CHORUS_VERSION:
        return _refusal(UNSUPPORTED_VERSION, f"chorus_version must be {CHORUS_VERSION}")
    for name in ("sender_id", "original_text", "sender_culture"):
        if not isinstance(fields.get(name), str):
            return _refusal(INVALID_ENVELOPE, f"missing {name}")
    return None


def _refusal(code: str, detail: str) -> ReceiverReply:
    return {"status": "error", "error_code": code, "detail": detail}


async def _read_body(receive: Receive) -> bytes | None:
    body = bytearray()
    while True:
        part = await receive()
        body += part.get("body", b"")
        if len(body) > limits.MAX_POSTED_BYTES:
            return None
        if not part.get("more_body"):
            return bytes(body)


async def _answer_lifespan(receive: Receive, send: Send) -> None:
    while True:
        event = await receive()
        await send({"type": f"{event['type']}.complete"})
        if event["type"] == "lifespan.shutdown":
            return
