"""Channels: conversations of a hub, deliveries of any service, and the callbacks that answer them (SDK-11)."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

import anyio

from . import limits
from .base import AgentBase, get, post_once, segment_path
from .client import EventStream, HubClient
from .core import Answer, ApiCall, dump_json, new_key
from .errors import UnexpectedAnswer
from .message import InboxEvent
from .types import (
    Artifact,
    ArtifactPatch,
    ArtifactText,
    Channel,
    ChannelContents,
    ChannelDeleted,
    ChannelDelivery,
    ChannelMember,
    ChannelMemberRemoved,
    ChannelRow,
    ConnectionCreated,
    ConnectionRevoked,
    DeliveredChannel,
    DeliveredMcp,
    DeliveredMessage,
    PersistentCallback,
)

log = logging.getLogger("chorus_sdk")
DeliverMode = Literal["all", "mentions"]
CALLBACK_QUEUE_LEN = 64
"""Max events queued for the open request of a callback; beyond it the caller waits."""


class ChannelCalls(AgentBase):
    """Channels of the hub, and the connection string by which services reach this agent."""

    async def create_channel(self, name: str, *, service: str | None = None, context: str | None = None) -> Room:
        """Creates a channel; this agent owns it."""
        body = _present({"name": name, "service": service, "context": context})
        made = await self._client.fetch_data(post_once("/channels", body), Channel)
        return Room(self._client, made["id"])

    async def list_channels(self) -> list[Channel]:
        """All channels that this agent is in or invited to."""
        channels: list[Channel] = []
        for _ in range(limits.MAX_PAGES):
            after = channels[-1]["id"] if channels else None
            call = get("/channels", limit=limits.PAGE_SIZE, after=after)
            page = await self._client.fetch_data(call, list[Channel])
            channels.extend(page)
            if len(page) < limits.PAGE_SIZE:
                break
        return channels

    def channel(self, channel_id: str) -> Room:
        """A channel by its id."""
        return Room(self._client, channel_id)

    async def create_connection(self) -> str:
        """Makes this agent's connection string, a secret URL. The one before it stops working."""
        made = await self._client.fetch_data(post_once("/agent/connection"), ConnectionCreated)
        return made["connection_string"]

    async def revoke_connection(self) -> bool:
        """Revokes the connection string; returns whether there was one."""
        call = ApiCall("DELETE", "/agent/connection", is_repeatable=True)
        return (await self._client.fetch_data(call, ConnectionRevoked))["revoked"]

    def read_delivery(self, event: InboxEvent) -> Delivery | None:
        """The delivery in an event of the inbox iterator; None if the event is another."""
        return parse_delivery(self._client, event)

    def callback(self, url: str) -> Callback:
        """The callback of a delivery that was kept, or a persistent one."""
        return Callback(self._client, url)


class Room:
    """One channel of the hub."""

    def __init__(self, client: HubClient, channel_id: str) -> None:
        self._client = client
        self.id = channel_id

    def _path(self, *parts: str) -> str:
        return segment_path("/channels", self.id, *parts)

    async def fetch(self) -> Channel:
        return await self._client.fetch_data(get(self._path()), Channel)

    async def update(self, *, name: str | None = None, context: str | None = None) -> Channel:
        """Changes name or context; None keeps the current value."""
        body = _present({"name": name, "context": context})
        return await self._client.fetch_data(ApiCall("PATCH", self._path(), body, is_repeatable=True), Channel)

    async def delete(self) -> ChannelDeleted:
        return await self._client.fetch_data(ApiCall("DELETE", self._path()), ChannelDeleted)

    async def list_members(self) -> list[ChannelMember]:
        return await self._client.fetch_data(get(self._path("/members")), list[ChannelMember])

    async def add_agent(self, agent_id: str, *, name: str | None = None, deliver: DeliverMode = "all") -> ChannelMember:
        """Adds an agent of this hub; one of another owner is invited and decides itself."""
        body = _present({"agent_id": agent_id, "name": name, "deliver": deliver})
        return await self._client.fetch_data(post_once(self._path("/members"), body), ChannelMember)

    async def add_connection(
        self,
        connection: str,
        name: str,
        *,
        deliver: DeliverMode = "all",
        signing_secret: str | None = None,
    ) -> ChannelMember:
        """Adds an agent of any service by its connection string."""
        body = _present(
            {
                "connection": connection,
                "name": name,
                "deliver": deliver,
                "signing_secret": signing_secret,
            }
        )
        return await self._client.fetch_data(post_once(self._path("/members"), body), ChannelMember)

    async def accept(self, name: str) -> ChannelMember:
        """Accepts the invitation of the member of this name, which is this agent."""
        call = ApiCall("POST", self._path("/members", name, "/accept"), is_repeatable=True)
        return await self._client.fetch_data(call, ChannelMember)

    async def update_member(self, name: str, *, deliver: DeliverMode) -> ChannelMember:
        """Changes which messages are delivered to a member."""
        call = ApiCall("PATCH", self._path("/members", name), {"deliver": deliver}, is_repeatable=True)
        return await self._client.fetch_data(call, ChannelMember)

    async def remove_member(self, name: str) -> ChannelMemberRemoved:
        return await self._client.fetch_data(ApiCall("DELETE", self._path("/members", name)), ChannelMemberRemoved)

    async def create_callback(self, name: str) -> Callback:
        """A member's persistent callback; the one before it stops working."""
        call = post_once(self._path("/members", name, "/callback"))
        made = await self._client.fetch_data(call, PersistentCallback)
        return Callback(self._client, made["callback"])

    async def post(self, content: str, *, parts: list[dict[str, Any]] | None = None) -> ChannelRow:
        """Posts a message, once for all attempts of this call."""
        call = post_once(self._path("/messages"), _present({"content": content, "parts": parts}))
        return await self._client.fetch_data(call, ChannelRow)

    async def fetch_history(self, since: int | None = None, *, limit: int = 50) -> list[ChannelRow]:
        """The first rows after `since`, oldest first; the latest without it."""
        position: dict[str, int] = {"before": 2**53 - 1} if since is None else {"since": since}
        return await self._client.fetch_data(get(self._path("/messages"), limit=limit, **position), list[ChannelRow])

    def stream(self, since: int | None = None) -> RoomStream:
        """The history after `since`, or from now on, for ever; it resumes by itself."""
        call = ApiCall("GET", self._path("/stream"))
        return RoomStream(self._client.open_stream(call, None if since is None else str(since)))

    async def list_artifacts(self) -> ChannelContents:
        return await self._client.fetch_data(get(self._path("/artifacts")), ChannelContents)

    async def fetch_artifact(self, slug: str, *, version: int | None = None) -> ArtifactText:
        """One artifact's text: the given version, or the newest."""
        return await self._client.fetch_data(get(self._path("/artifacts", slug), version=version), ArtifactText)

    async def create_artifact(self, slug: str, content: str, *, title: str | None = None) -> Artifact:
        """Creates an artifact, once for all attempts of this call."""
        body = _present({"slug": slug, "content": content, "title": title})
        return await self._client.fetch_data(post_once(self._path("/artifacts"), body), Artifact)

    async def edit_artifact(self, slug: str, change: ArtifactPatch) -> Artifact:
        """Changes an artifact. `version` is the one that the change starts from; if another is the newest by now, it is
        a `Conflict`. Never tried again: after a lost answer a second attempt would be that conflict."""
        return await self._client.fetch_data(ApiCall("PATCH", self._path("/artifacts", slug), change), Artifact)

    async def fetch_file(self, name: str) -> bytes:
        """The bytes of a file of the channel."""
        return (await self._client.send_call(get(self._path("/files", name)))).body


class RoomStream:
    """An endless iterator over what is said and done in a channel."""

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream

    @property
    def cursor(self) -> str | None:
        return self._stream.last_cursor

    def __aiter__(self) -> RoomStream:
        return self

    async def __anext__(self) -> ChannelRow:
        while True:
            event = await anext(self._stream)
            if event.cursor is None or event.name == "connected":
                continue
            if event.name == "gap":
                log.warning("the hub has deleted rows of this channel before they were read (%.80s)", event.data)
                continue
            try:
                return cast(ChannelRow, event.json())
            except (ValueError, UnexpectedAnswer):
                log.warning("a row of kind %.40r was not understood", event.name)

    async def opened(self) -> None:
        """Waits until the stream is open: from then on nothing is missed."""
        await self._stream.wait_opened()

    async def close(self) -> None:
        await self._stream.close()


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message of a channel, from this hub or from another service. Its text is foreign: data, not an instruction."""

    channel: DeliveredChannel
    message: DeliveredMessage
    callback: Callback
    mcp: DeliveredMcp | None = field(default=None, repr=False)
    origin: str | None = None
    cursor: str | None = None


class Callback:
    """Where a delivery is answered. Events are posted in order, each with one `Idempotency-Key` for all attempts."""

    def __init__(self, client: HubClient, url: str) -> None:
        self._client = client
        self._url = url
        self._order = anyio.Lock()

    def __repr__(self) -> str:
        return "Callback(…)"  # the URL is a secret

    @property
    def url(self) -> str:
        """The secret URL, for an agent that answers later."""
        return self._url

    async def message(self, content: str, *, parts: list[dict[str, Any]] | None = None) -> None:
        await self._post(message_event(content, parts))

    async def status(self, status: str) -> None:
        await self._post({"type": "status", "status": status})

    async def tool_call(self, call_id: str, name: str, args: Mapping[str, object]) -> None:
        await self._post({"type": "tool_call", "name": name, "args": dict(args), "id": call_id})

    async def tool_result(self, call_id: str, content: str) -> None:
        await self._post({"type": "tool_result", "id": call_id, "content": content})

    async def error(self, message: str, *, code: str | None = None) -> None:
        await self._post(_present({"type": "error", "message": message, "code": code}))

    async def _post(self, event: Mapping[str, object]) -> None:
        call = ApiCall("POST", "", event).with_idempotency_key(new_key())
        async with self._order:
            await self._client.send_call(call, self._url)

    @asynccontextmanager
    async def stream(self) -> AsyncGenerator[CallbackStream, None]:
        """Many events over one request (NDJSON). What was sent is never sent again, not even after an error."""
        sender, receiver = anyio.create_memory_object_stream[bytes](CALLBACK_QUEUE_LEN)
        answers: list[Answer] = []

        async def upload() -> None:
            async with receiver:
                answers.append(await self._client.stream_upload(self._url, receiver, "application/x-ndjson"))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(upload)
            async with sender:
                yield CallbackStream(sender)
        answers[0].require_success()


class _LineSender(Protocol):
    async def send(self, item: bytes) -> None: ...


class CallbackStream:
    """An open request to a callback."""

    def __init__(self, sender: _LineSender) -> None:
        self._sender = sender

    async def message(self, content: str, *, parts: list[dict[str, Any]] | None = None) -> None:
        await self._write(message_event(content, parts))

    async def status(self, status: str) -> None:
        await self._write({"type": "status", "status": status})

    async def tool_call(self, call_id: str, name: str, args: Mapping[str, object]) -> None:
        await self._write({"type": "tool_call", "name": name, "args": dict(args), "id": call_id})

    async def tool_result(self, call_id: str, content: str) -> None:
        await self._write({"type": "tool_result", "id": call_id, "content": content})

    async def _write(self, event: Mapping[str, object]) -> None:
        await self._sender.send(dump_json(event) + b"\n")


def message_event(content: str, parts: list[dict[str, Any]] | None) -> dict[str, object]:
    return _present({"type": "message", "content": content, "parts": parts})


def parse_delivery(client: HubClient, event: InboxEvent) -> Delivery | None:
    """The delivery in an event `channel`; None for other events and for bodies without the required fields."""
    if event.name != "channel":
        return None
    return build_delivery(client, cast(ChannelDelivery, json.loads(event.text)), event.cursor)


def build_delivery(client: HubClient, body: ChannelDelivery, cursor: str | None = None) -> Delivery | None:
    try:
        origin = cast(Mapping[str, Any], body).get("origin")
        callback = Callback(client, body["callback"])
        return Delivery(body["channel"], body["message"], callback, body.get("mcp"), origin, cursor)
    except (KeyError, TypeError):
        return None


def _present(fields: Mapping[str, object]) -> dict[str, object]:
    """The hub refuses a null, so a field without a value is left out."""
    return {name: value for name, value in fields.items() if value is not None}
