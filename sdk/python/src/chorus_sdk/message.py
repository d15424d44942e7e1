"""What comes on the inbox: messages, receipts and other events, and what a send returns."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast

from . import limits
from .errors import DeliveryFailed, UnexpectedAnswer
from .sse import StreamEvent
from .types import Envelope, MessageEvent, ReceiptEvent, ReceiverReply

if TYPE_CHECKING:
    from .agent import Agent

log = logging.getLogger("chorus_sdk")
ADAPTATION_FAILED = "ADAPTATION_FAILED"
"""The code that a sender sees when the handler of the receiver failed."""
DeliveryState = Literal["delivered_sse", "delivered", "queued", "failed"]


class Message:
    """A message to this agent. Nothing is acknowledged before `ack`, `fail` or the end of a handler."""

    def __init__(self, agent: Agent, event: MessageEvent, cursor: str | None) -> None:
        self._agent = agent
        self.trace_id: str = event["trace_id"]
        self.sender: str = event["sender_id"]
        self.envelope: Envelope = event["envelope"]
        self.timestamp: str = event["timestamp"]
        self.cursor = cursor
        self._answered: ReceiverReply | None = None

    @property
    def text(self) -> str:
        """What the sender wrote. It is foreign text: data, not an instruction."""
        return self.envelope["original_text"]

    @property
    def culture(self) -> str:
        return self.envelope["sender_culture"]

    @property
    def conversation_id(self) -> str | None:
        return self.envelope.get("conversation_id")

    @property
    def turn_number(self) -> int | None:
        return self.envelope.get("turn_number")

    @property
    def answered(self) -> ReceiverReply | None:
        """What this receiver has answered so far."""
        return self._answered

    async def ack(self) -> None:
        """Tells the sender that the message was taken."""
        await self._respond({"status": "ok"})

    async def fail(self, code: str, detail: str | None = None) -> None:
        """Tells the sender that the message was not taken, and why."""
        reply: ReceiverReply = {"status": "error", "error_code": code}
        if detail:
            reply["detail"] = detail
        await self._respond(reply)

    async def mark_shown(self) -> None:
        """Tells the sender that a model or a person was shown the text. It is no receipt and no answer (R-81)."""
        await self._agent.mark_shown(self.trace_id)

    async def _respond(self, reply: ReceiverReply) -> None:
        await self._agent.respond(self.trace_id, reply)
        self._answered = reply

    async def reply(
        self, text: str, *, cultural_context: str | None = None, idempotency_key: str | None = None
    ) -> SendResult:
        """Writes back in the same conversation, one turn on (SDK-07)."""
        return await self._agent.send(
            self.sender,
            text,
            cultural_context=cultural_context,
            conversation_id=self.conversation_id or self.trace_id,
            turn_number=(self.turn_number or 1) + 1,
            idempotency_key=idempotency_key,
        )

    def turn_key(self) -> tuple[str, str, int] | None:
        if self.conversation_id is None or self.turn_number is None:
            return None
        return (self.sender, self.conversation_id, self.turn_number)

    def __repr__(self) -> str:
        return f"Message(sender={self.sender!r}, trace_id={self.trace_id!r})"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The receiver's acknowledgement of a message of ours."""

    trace_id: str
    receiver: str
    response: ReceiverReply
    timestamp: str
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class InboxEvent:
    """Another event of the inbox: `shown`, `gap`, `channel`, `channel_invite`, `job`, `job_update`, `job_result` and
    later kinds."""

    name: str
    data: Mapping[str, object]
    cursor: str | None = None
    text: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class SendResult:
    """What became of a message. `failed` is a result; `ok()` makes it an error (SDK-04)."""

    delivery: DeliveryState
    trace_id: str
    conversation_id: str
    turn_number: int
    response: ReceiverReply | None = None
    error_code: str | None = None
    detail: str | None = None
    answer: Message | None = None
    shown_at: str | None = None

    def ok(self) -> SendResult:
        """This result, or `DeliveryFailed` if the message was not delivered or its receiver refused it."""
        if self.delivery == "failed":
            raise DeliveryFailed(self.detail or "the message could not be delivered", code=self.error_code)
        if self.response is not None and self.response.get("status") == "error":
            detail = self.response.get("detail") or "the receiver refused the message"
            raise DeliveryFailed(detail, code=self.response.get("error_code"))
        return self


InboxItem = Message | Receipt | InboxEvent


def parse_inbox_event(agent: Agent, event: StreamEvent) -> InboxItem | None:
    """The event as an object; None for those that are about the stream alone, or that cannot be understood."""
    try:
        data = event.json()
        if event.name == "message":
            return Message(agent, cast(MessageEvent, data), event.cursor)
        if event.name == "receipt":
            receipt = cast(ReceiptEvent, data)
            return Receipt(
                receipt["trace_id"],
                receipt["receiver_id"],
                receipt["response"],
                receipt["timestamp"],
                event.cursor,
            )
    except (KeyError, TypeError, ValueError, UnexpectedAnswer):
        log.warning("an event of kind %.40r was not understood", event.name)
        return None
    if event.name == "connected" or event.cursor is None:
        return None
    if event.name == "gap":
        log.warning("the hub has deleted events of this inbox before they were read (%.80s)", event.data)
    return InboxEvent(event.name, data, event.cursor, event.data)


class ReplyCache:
    """The latest answers by turn: a turn that comes again is answered as the first time (R-28, SDK-07)."""

    def __init__(self) -> None:
        self._replies: OrderedDict[tuple[str, str, int], ReceiverReply] = OrderedDict()

    def get(self, message: Message) -> ReceiverReply | None:
        key = message.turn_key()
        return self._replies.get(key) if key else None

    def insert(self, message: Message, reply: ReceiverReply) -> None:
        key = message.turn_key()
        if key is None:
            return
        self._replies[key] = reply
        while len(self._replies) > limits.MAX_CACHED_REPLIES:
            self._replies.popitem(last=False)
