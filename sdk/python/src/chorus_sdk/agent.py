"""An agent of a hub: it loads or registers its identity, sends, receives and serves its handlers."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, Self, cast

import anyio

from . import files, limits
from .base import get, post_once, segment_path
from .channel import ChannelCalls
from .client import EventStream, HubClient, Sleep, Verify
from .core import ApiCall, Backoff, new_key
from .errors import ChorusError, CredentialsError, InvalidInput, WaitTimeout
from .files import Credentials, IdentityFiles
from .frame import FrameCalls
from .identity import IdentityCalls
from .listener import HandlerCalls
from .market import MarketCalls
from .message import InboxEvent, InboxItem, Message, Receipt, SendResult, parse_inbox_event
from .organisation import OrganisationCalls
from .sse import StreamEvent
from .store import FileStore, MemoryStore, Store
from .types import Envelope, HistoryRow, MessageStatus, ReceiverReply, RegistrationReply, SendReply
from .wake import MonotonicClock, Run, WakeBudget
from .wake import wake as run_wake_loop

CHORUS_VERSION: Literal["0.4"] = "0.4"
CARD_VERSION: Literal["0.3"] = "0.3"
WaitFor = Literal["shown", "receipt", "answer"]
"""`shown`: a model or a person was shown the text. `receipt`: the receiver acknowledged the message. `answer`: the
receiver wrote back in the conversation."""
StreamReach = Literal["turns", "wakes"]
"""What the reader of a stream does with a message: looks between turns, or starts a turn."""


class Agent(IdentityCalls, ChannelCalls, FrameCalls, OrganisationCalls, MarketCalls, HandlerCalls):
    """One agent at one hub. Use `Agent.load()` or `Agent.register()`."""

    def __init__(
        self,
        agent_id: str,
        api_key: str,
        hub_url: str,
        *,
        culture: str | None = None,
        store: Store | None = None,
        files: IdentityFiles | None = None,
        backoff: Backoff | None = None,
        sleep: Sleep = anyio.sleep,
        verify: Verify = True,
        silence_timeout: float | None = None,
    ) -> None:
        self._credentials = Credentials(agent_id, api_key, hub_url)
        self._files = files
        self._culture = culture
        self._store = store or (FileStore(files, self._credentials) if files else MemoryStore())
        if culture is None and isinstance(self._store, FileStore):
            self._culture = self._store.culture()
        self._client = HubClient(hub_url, api_key, backoff=backoff, sleep=sleep, verify=verify)
        if silence_timeout is not None:
            self._client.silence_timeout = silence_timeout
        self._init_handlers()

    @classmethod
    def load(
        cls,
        credentials: str | os.PathLike[str] | None = None,
        *,
        hub_url: str | None = None,
        culture: str | None = None,
        store: Store | None = None,
        verify: Verify = True,
    ) -> Self:
        """The identity that the command line uses here: the given file, `./chorus-credentials.json`,
        `$CHORUS_HOME/config.json` or `~/.chorus/config.json`."""
        located = IdentityFiles.locate(credentials)
        found = files.read_credentials(located)
        if found is None:
            raise CredentialsError(
                f"{located.credentials.name} holds no identity; run `chorus register NAME --hub URL`"
            )
        hub_url = hub_url or found.hub_url
        return cls(
            found.agent_id,
            found.api_key,
            hub_url,
            culture=culture,
            store=store,
            files=located,
            verify=verify,
        )

    @classmethod
    async def register(
        cls,
        agent_id: str,
        hub_url: str,
        *,
        culture: str = "en",
        languages: list[str] | None = None,
        endpoint: str | None = None,
        endpoint_secret: str | None = None,
        invite_code: str | None = None,
        credentials: str | os.PathLike[str] | None = None,
        store: Store | None = None,
        save: bool = True,
        verify: Verify = True,
    ) -> Self:
        """Registers a new agent and saves its key where the command line finds it, or with `save=False` nowhere.

        All attempts of this call have one random `Idempotency-Key`, so a lost answer is asked for again and brings the
        same key."""
        located = IdentityFiles.locate(credentials) if save else None
        if located is not None:
            files.check_slot(located)
        card = {
            "card_version": CARD_VERSION,
            "user_culture": culture,
            "supported_languages": languages or [culture],
        }
        body: dict[str, Any] = {"agent_id": agent_id, "agent_card": card}
        extra = {
            "endpoint": endpoint,
            "endpoint_secret": endpoint_secret,
            "invite_code": invite_code,
        }
        body.update({name: value for name, value in extra.items() if value is not None})
        async with HubClient(hub_url, None, verify=verify) as client:
            reply = await client.fetch_data(post_once("/register", body), RegistrationReply)
        key = reply.get("api_key")
        if not key:
            raise CredentialsError("the hub registered the agent without a key")
        made = Credentials(reply["agent_id"], key, hub_url)
        if located is not None:
            files.save_credentials(located, made)
            position = FileStore(located, made)
            position.save_culture(culture)
            # The identity begins here, so a first listener starts with the first message ever sent to it.
            position.save_cursor("0")
        elif store is None:
            store = MemoryStore("0")
        return cls(made.agent_id, key, hub_url, culture=culture, store=store, files=located, verify=verify)

    @property
    def key(self) -> str:
        """The secret key. Keep it out of logs and prompts."""
        return self._credentials.api_key

    async def send(
        self,
        to: str,
        text: str,
        *,
        cultural_context: str | None = None,
        culture: str | None = None,
        conversation_id: str | None = None,
        turn_number: int | None = None,
        idempotency_key: str | None = None,
        wait: WaitFor | None = None,
        timeout: float = 60.0,
    ) -> SendResult:
        """Sends a message. One `Idempotency-Key` holds for all attempts of this call, so it arrives once (SDK-03).

        With `wait` it returns when the fact is there, or raises `WaitTimeout` after `timeout` seconds."""
        await self._client.check_version()
        envelope: Envelope = {
            "chorus_version": CHORUS_VERSION,
            "sender_id": self.agent_id,
            "original_text": text,
            "sender_culture": culture or await self._own_culture(),
            "conversation_id": conversation_id or _new_conversation(idempotency_key),
            "turn_number": turn_number or 1,
        }
        if cultural_context is not None:
            envelope["cultural_context"] = cultural_context
        call = ApiCall("POST", "/messages", {"receiver_id": to, "envelope": envelope})
        call = call.with_idempotency_key(idempotency_key or new_key())
        if wait is None:
            return _send_result(await self._client.fetch_data(call, SendReply), envelope)
        if wait not in ("shown", "receipt", "answer"):
            raise InvalidInput('wait is "shown", "receipt" or "answer"')
        return await self._send_and_wait(call, envelope, wait, timeout)

    async def _send_and_wait(self, call: ApiCall, envelope: Envelope, wait: WaitFor, timeout: float) -> SendResult:
        awaited = envelope.get("conversation_id", "")
        if wait == "answer":
            self._awaited_conversations.add(awaited)
        stream = self._open_inbox(None)
        deadline = anyio.current_time() + timeout
        try:
            # The stream is open before the message leaves, so the fact cannot come before it.
            with anyio.CancelScope(deadline=deadline):
                await stream.wait_opened()
            result = _send_result(await self._client.fetch_data(call, SendReply), envelope)
            if result.delivery == "failed" or (wait == "receipt" and result.response is not None):
                return result
            with anyio.CancelScope(deadline=deadline):
                return await self._read_fact(stream, result, wait)
            asked = await self._ask_for_fact(stream, result, wait)
        finally:
            self._awaited_conversations.discard(awaited)
            await stream.close()
        if asked is None:
            raise WaitTimeout(f"no {wait} came in time")
        return asked

    async def _read_fact(self, stream: EventStream, result: SendResult, wait: WaitFor) -> SendResult:
        connections = 0
        while True:
            event = await anext(stream)
            found = self._match_fact(result, parse_inbox_event(self, event), wait)
            connections += event.name == "connected"
            if found is None and event.name == "connected" and connections > 1:
                # The stream was away, and a stream without a cursor does not replay.
                found = await self._ask_for_fact(stream, result, wait)
            if found is not None:
                return found

    def _match_fact(self, result: SendResult, item: InboxItem | None, wait: WaitFor) -> SendResult | None:
        if wait == "receipt" and isinstance(item, Receipt) and item.trace_id == result.trace_id:
            return dataclasses.replace(result, response=item.response)
        if wait == "answer" and isinstance(item, Message) and _is_answer(item, result):
            return dataclasses.replace(result, answer=item)
        if wait == "shown" and isinstance(item, InboxEvent) and _is_shown(item, result):
            return dataclasses.replace(result, shown_at=str(item.data["timestamp"]))
        return None

    async def _ask_for_fact(self, stream: EventStream, result: SendResult, wait: WaitFor) -> SendResult | None:
        """The stream may have been away when the fact came, so the hub is asked before giving up."""
        if wait == "shown":
            shown_at = (await self.fetch_status(result.trace_id)).get("shown_at")
            return None if shown_at is None else dataclasses.replace(result, shown_at=shown_at)
        if wait == "receipt":
            status = await self.fetch_status(result.trace_id)
            response = status.get("receiver_response")
            if response is None:
                return None
            return dataclasses.replace(result, response=cast(ReceiverReply, response))
        rows = await self.fetch_history(stream.opened_at) if stream.opened_at else []
        events = [StreamEvent("message", json.dumps(row), str(row["id"])) for row in rows]
        found = [self._match_fact(result, parse_inbox_event(self, event), wait) for event in events]
        return next((one for one in found if one is not None), None)

    async def _own_culture(self) -> str:
        if self._culture is None:
            card = (await self.fetch_record()).get("agent_card") or {}
            self._culture = card.get("user_culture") or "en"
        return self._culture

    async def respond(self, trace_id: str, reply: ReceiverReply) -> MessageStatus:
        """Sends the receiver's reply to a message. The same again is no error, so it is tried again."""
        call = ApiCall(
            "POST",
            segment_path("/agent/messages", trace_id, "/response"),
            reply,
            is_repeatable=True,
        )
        return await self._client.fetch_data(call, MessageStatus)

    async def mark_shown(self, trace_id: str) -> MessageStatus:
        """Says that the text of a message to this agent was part of a model's turn or on a person's screen. The first
        time stands, so it is tried again."""
        call = ApiCall("POST", segment_path("/agent/messages", trace_id, "/shown"), is_repeatable=True)
        return await self._client.fetch_data(call, MessageStatus)

    async def fetch_status(self, trace_id: str) -> MessageStatus:
        """The delivery state of a message; only its sender and its receiver may read it."""
        return await self._client.fetch_data(get(segment_path("/messages", trace_id)), MessageStatus)

    async def fetch_history(self, since: str | None = None, *, limit: int = 200) -> list[HistoryRow]:
        """One page of sent and received messages, oldest first, after a cursor or from a time on."""
        return await self._client.fetch_data(get("/agent/messages", since=since, limit=limit), list[HistoryRow])

    def inbox(self, since: str | None = None) -> Inbox:
        """Everything that comes to this agent, for ever: it replays, goes live and resumes. Nothing is acknowledged or
        saved by itself. Without `since` it begins after what a listener has handled, or now."""
        return Inbox(self, self._open_inbox(since if since is not None else self._store.cursor()))

    async def messages(self, since: str | None = None) -> AsyncIterator[Message]:
        """Only the messages of `inbox`."""
        async with self.inbox(since) as inbox:
            async for item in inbox:
                if isinstance(item, Message):
                    yield item

    def _open_inbox(self, since: str | None, reach: StreamReach | None = None) -> EventStream:
        stream = self._client.open_stream(ApiCall("GET", "/agent/inbox", query={"reach": reach}), since)
        stream.on_reopen_without_cursor = self._read_missed
        return stream

    async def _read_missed(self, connected_at: str) -> list[StreamEvent]:
        """A stream that broke before its first event has no cursor: the messages since it was opened are in history."""
        with suppress(ChorusError):
            rows = await self.fetch_history(connected_at)
            return [
                StreamEvent("message", json.dumps(row), str(row["id"]))
                for row in rows
                if row["sender_id"] != self.agent_id or row["receiver_id"] == self.agent_id
            ]
        return []

    async def wake(
        self,
        run: Run,
        *,
        stop: anyio.Event | None = None,
        budget: WakeBudget | None = None,
        clock: MonotonicClock = time.monotonic,
        window: float = limits.BATCH_WINDOW_S,
    ) -> None:
        """The loop for a runner of another framework. `run` gets a prompt in which the messages of one sender stand as
        data, and returns the answer or None. One run at a time, within a budget; the senders hear `shown` when it
        begins, and `ok` after it, or `ADAPTATION_FAILED` when it raises. It takes the place of `serve`."""
        await self._client.check_version()
        await run_wake_loop(self, run, stop=stop, budget=budget, clock=clock, window=window)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


class Inbox:
    """An endless iterator over the inbox; `cursor` is the position of the last item handed out."""

    def __init__(self, agent: Agent, stream: EventStream) -> None:
        self._agent = agent
        self._stream = stream

    @property
    def cursor(self) -> str | None:
        return self._stream.last_cursor

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> InboxItem:
        while True:
            item = parse_inbox_event(self._agent, await anext(self._stream))
            if item is not None:
                return item

    async def opened(self) -> None:
        """Waits until the stream is open: from then on nothing is missed."""
        await self._stream.wait_opened()

    async def close(self) -> None:
        await self._stream.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _new_conversation(idempotency_key: str | None) -> str:
    """The same for every send with one key of the caller's, whose body must not differ."""
    if idempotency_key is None:
        return str(uuid.uuid4())
    return hashlib.sha256(idempotency_key.encode()).hexdigest()[:32]


def _is_answer(message: Message, result: SendResult) -> bool:
    is_same = message.conversation_id == result.conversation_id
    return is_same and (message.turn_number or 0) > result.turn_number


def _is_shown(event: InboxEvent, result: SendResult) -> bool:
    is_same = event.data.get("trace_id") == result.trace_id
    return event.name == "shown" and is_same and "timestamp" in event.data


def _send_result(reply: SendReply, envelope: Envelope) -> SendResult:
    return SendResult(
        delivery=cast(Any, reply["delivery"]),
        trace_id=reply["trace_id"],
        conversation_id=envelope.get("conversation_id", ""),
        turn_number=envelope.get("turn_number", 1),
        response=reply.get("receiver_response"),
        error_code=reply.get("error_code"),
        detail=reply.get("detail"),
    )
