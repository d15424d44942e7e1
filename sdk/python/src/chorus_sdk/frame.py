"""Frames: announcements, questions, handovers and locks between the sessions of a handle (SDK-12, docs/frame.md)."""

from __future__ import annotations

import logging
import math
import os
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast, get_args

import anyio

from . import limits
from .base import AgentBase, get, segment_path
from .client import EventStream, HubClient
from .core import ApiCall
from .errors import ChorusError, InvalidInput, ResourceClaimed, UnexpectedAnswer, single_error
from .locks import LockClaims
from .types import (
    AccessRemoved,
    DecisionQuestion,
    Frame,
    HandleGrant,
    HandleGrants,
    SessionRoster,
    SubmissionReply,
)

log = logging.getLogger("chorus_sdk")
Clock = Callable[[], datetime]
EventClass = Literal["merged", "stale", "released", "other"]
ComputeLocation = Literal["server-active", "server-aggregate", "local-only"]
"""Where what a frame says was computed. `local-only`: nothing left the device."""


def utc_now() -> datetime:
    return datetime.now(UTC)


class FrameCalls(AgentBase):
    """Sessions of this agent's handle, and who may address them."""

    def session(
        self,
        instrument: str,
        session_id: str | None = None,
        *,
        compute: ComputeLocation | None = None,
        clock: Clock = utc_now,
    ) -> Session:
        """A session that sends and receives frames, such as `agent.session("cc-editor")`. `compute` is where its model
        runs; otherwise `$CHORUS_COMPUTE`, or `server-active`."""
        session_id = session_id or uuid.uuid4().hex
        return Session(self._client, self.handle, instrument, session_id, clock, compute)

    async def fetch_roster(self, handle: str | None = None) -> SessionRoster:
        """The live sessions of a handle."""
        return await self._client.fetch_bare(
            get(segment_path("/handles", handle or self.handle, "/roster")), SessionRoster
        )

    async def list_grants(self) -> HandleGrants:
        """The handles that may address this one."""
        return await self._client.fetch_bare(get(segment_path("/handles", self.handle, "/grants")), HandleGrants)

    async def create_grant(self, other: str) -> HandleGrant:
        """Allows another handle to address the sessions of this one."""
        call = ApiCall("PUT", segment_path("/handles", self.handle, "/grants", other), is_repeatable=True)
        return await self._client.fetch_bare(call, HandleGrant)

    async def revoke_grant(self, other: str) -> AccessRemoved:
        call = ApiCall("DELETE", segment_path("/handles", self.handle, "/grants", other), is_repeatable=True)
        return await self._client.fetch_bare(call, AccessRemoved)


def _check_compute(text: str) -> ComputeLocation:
    if text not in get_args(ComputeLocation):
        raise InvalidInput(f"{text!r} is no compute location: one of {', '.join(get_args(ComputeLocation))}")
    return cast(ComputeLocation, text)


@dataclass(frozen=True, slots=True)
class SentFrame:
    """What became of a frame."""

    frame_id: str
    recipient_count: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Frames were missed and are no longer kept."""


@dataclass(frozen=True, slots=True)
class FrameAnswer:
    """An answer to a question: foreign text."""

    sender: str
    session: str
    text: str
    frame_id: str


class Session:
    """One session of a handle: an instrument and a session id."""

    def __init__(
        self,
        client: HubClient,
        handle: str,
        instrument: str,
        session_id: str,
        clock: Clock,
        compute: ComputeLocation | None = None,
    ) -> None:
        self._client = client
        self.handle = handle
        self.instrument = instrument
        self.id = session_id
        self.compute = _check_compute(compute or os.environ.get("CHORUS_COMPUTE") or "server-active")
        self._clock = clock

    async def send_frame(
        self,
        kind: str,
        payload: dict[str, Any],
        *,
        scope: str | None = None,
        ttl_ms: int | None = None,
    ) -> SentFrame:
        """Submits a frame of any kind. A repeated request has the same id, so it is emitted once (R-41)."""
        scope = scope or self.handle
        frame = self.build_frame(kind, payload, scope, ttl_ms)
        headers = {"X-Chorus-Instrument": self.instrument, "X-Chorus-Session": self.id}
        body = {"scope": scope, "frame": frame}
        call = ApiCall("POST", "/frames", body, headers=headers, is_repeatable=True)
        reply = await self._client.fetch_bare(call, SubmissionReply)
        return SentFrame(reply["frame_id"], reply["recipient_count"])

    def build_frame(self, kind: str, payload: dict[str, Any], scope: str, ttl_ms: int | None) -> dict[str, Any]:
        """The frame with true default provenance: no context check, and computed where the session says (FRM-15)."""
        recipient = scope_handle(scope)
        # Other handles do not learn the session (FRM-111).
        basis = f"session:{self.instrument}@{self.id}" if recipient == self.handle else "command"
        frame: dict[str, Any] = {
            "envelope_version": "1.0",
            "frame_id": str(uuid.uuid4()),
            "kind": kind,
            "sender_handle": self.handle,
            "recipient_handle": recipient,
            "created_at": self._clock().isoformat().replace("+00:00", "Z"),
            "payload": payload,
            "acted_by": self.handle,
            "drafted_with": drafter_handle(self.instrument),
            "provenance_compute_location": self.compute,
            "provenance_method": ["sdk-python"],
            "provenance_context_check": "skipped",
            "provenance_basis": basis,
        }
        if ttl_ms is not None:
            frame["ttl_ms"] = ttl_ms
        return frame

    async def advise(self, text: str, *, files: list[str] | None = None, scope: str | None = None) -> SentFrame:
        """Tells other sessions what this one is doing."""
        payload: dict[str, Any] = {"advisory_text": text}
        if files:
            payload["file_refs"] = files
        return await self.send_frame("agent_advisory", payload, scope=scope)

    async def broadcast(
        self,
        text: str,
        *,
        event: EventClass = "other",
        refs: list[str] | None = None,
        scope: str | None = None,
    ) -> SentFrame:
        """Tells other sessions what has happened."""
        payload: dict[str, Any] = {"broadcast_text": text, "event_class": event}
        if refs:
            payload["refs"] = refs
        return await self.send_frame("agent_broadcast", payload, scope=scope)

    async def handover(self, text: str, *, refs: list[str] | None = None, scope: str | None = None) -> SentFrame:
        """Offers work to another session."""
        payload: dict[str, Any] = {"previous_session_id": self.id, "handover_body": text}
        if refs:
            payload["pointer_refs"] = refs
        return await self.send_frame("agent_handover", payload, scope=scope)

    async def take_handover(self, offer: Frame) -> SentFrame:
        """Takes work that another session has offered. Of two sessions the first in the stream has it."""
        taken = dict(offer["payload"])
        refs = [f"frame:{offer['frame_id']}"]
        payload = {**taken, "next_session_id": self.id, "pointer_refs": refs}
        return await self.send_frame("agent_handover", payload, scope=offer["sender_handle"])

    async def ask(
        self, text: str, *, window: float = 5.0, count: int | None = None, scope: str | None = None
    ) -> list[FrameAnswer]:
        """Asks other sessions, and returns what they answer within `window` seconds, or the first `count` answers."""
        query_id = str(uuid.uuid4())
        payload = {
            "query_text": text,
            "query_id": query_id,
            "response_scope": f"{self.handle}/{self.instrument}@{self.id}",
            "timeout_ms": max(1, round(window * 1000)),
        }
        answers: list[FrameAnswer] = []
        async with self.watch("kind:agent_response") as frames:
            await frames.opened()
            await self.send_frame("agent_query", payload, scope=scope)
            with anyio.move_on_after(window):
                async for frame in frames:
                    if isinstance(frame, Gap) or frame["payload"].get("query_id") != query_id:
                        continue
                    answers.append(_read_answer(frame))
                    if count is not None and len(answers) >= count:
                        break
        return answers

    async def answer(self, query: Frame, text: str) -> SentFrame:
        """Answers a question, or a binding moment."""
        asked = cast(dict[str, Any], query["payload"])
        payload = {
            "query_id": asked.get("query_id", query["frame_id"]),
            "response_text": text,
            "responder_session_id": self.id,
            "responded_to_frame_id": query["frame_id"],
        }
        return await self.send_frame(
            "agent_response", payload, scope=asked.get("response_scope") or query["sender_handle"]
        )

    async def decide(
        self,
        synopsis: str,
        question: DecisionQuestion,
        *,
        offer: str,
        findings: list[str] | None = None,
        recommendations: list[str] | None = None,
        timeout: float = 600.0,
        scope: str | None = None,
    ) -> FrameAnswer | None:
        """Asks a person for a decision and waits for it; None after `timeout` seconds."""
        payload = {
            "synopsis": synopsis,
            "findings": findings or [],
            "recommendations": recommendations or [],
            "offer": offer,
            "question": question,
        }
        async with self.watch("kind:agent_response") as frames:
            await frames.opened()
            sent = await self.send_frame("agent_binding_moment", payload, scope=scope)
            with anyio.move_on_after(timeout):
                async for frame in frames:
                    if isinstance(frame, Gap):
                        continue
                    named = (
                        frame["payload"].get("responded_to_frame_id"),
                        frame["payload"].get("query_id"),
                    )
                    if sent.frame_id in named:
                        return _read_answer(frame)
        return None

    def watch(self, filter: str | None = None, *, since: str | None = None) -> FrameStream:
        """The frames for this session, for ever: live, or after a cursor; `"0"` is all that the hub keeps."""
        query = {"instrument": self.instrument, "session": self.id, "filter": filter}
        call = ApiCall("GET", segment_path("/handles", self.handle, "/stream"), query=query)
        return FrameStream(self._client.open_stream(call, since), since == "0", self._clock)

    @asynccontextmanager
    async def lock(
        self, resource: str, *, ttl: float = 300.0, intent: str | None = None, wait: bool = True
    ) -> AsyncGenerator[str, None]:
        """Claims a resource among the sessions of this handle, extends the claim while it is held, and releases it on
        every way out. Yields the lease id. Without `wait` a resource of another session is `ResourceClaimed`."""
        lease_id = await self._claim(resource, ttl, intent, wait)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._extend, lease_id, ttl)
                yield lease_id
                tasks.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            # The task group is ours, so the caller gets its own exception as it raised it.
            raise single_error(group) from None
        finally:
            with anyio.CancelScope(shield=True), suppress(ChorusError):
                await self.send_frame("agent_lock_release", {"lease_id": lease_id, "resource": resource})

    async def _claim(self, resource: str, ttl: float, intent: str | None, wait: bool) -> str:
        claims = LockClaims()
        async with self.watch(since="0") as frames:
            await frames.opened()
            await self._replay(frames, claims)
            while True:
                await self._await_free(frames, claims, resource, wait)
                lease_id = str(uuid.uuid4())
                payload: dict[str, Any] = {
                    "resource": resource,
                    "lease_id": lease_id,
                    "ttl_ms": round(ttl * 1000),
                }
                if intent:
                    payload["intent"] = intent
                await self.send_frame("agent_lock_request", payload)
                with anyio.move_on_after(limits.LOCK_ECHO_S):
                    while not claims.has_lease(lease_id):
                        claims.apply_frame(await anext(frames))
                # The handle's stream has one order for all sessions, so all of them agree on the first claim.
                if not claims.has_earlier(resource, lease_id, self._clock()):
                    return lease_id
                await self.send_frame("agent_lock_release", {"lease_id": lease_id, "resource": resource})
                claims.remove(self.handle, lease_id)
                if not wait:
                    raise ResourceClaimed("another session claimed it first")

    async def _replay(self, frames: FrameStream, claims: LockClaims) -> None:
        """Reads what the hub keeps: it writes all of it at once, so a silence is the end."""
        while True:
            with anyio.move_on_after(limits.REPLAY_QUIET_S) as quiet:
                claims.apply_frame(await anext(frames))
            if quiet.cancelled_caught:
                return

    async def _await_free(self, frames: FrameStream, claims: LockClaims, resource: str, wait: bool) -> None:
        while (first := claims.first_on(resource, self._clock())) is not None:
            if not wait:
                raise ResourceClaimed("another session holds it")
            left = max(0.0, (first.expires_at - self._clock()).total_seconds())
            with anyio.move_on_after(left):
                claims.apply_frame(await anext(frames))

    async def _extend(self, lease_id: str, ttl: float) -> None:
        interval = min(limits.MAX_LEASE_EXTEND_S, ttl / 2)
        while True:
            await self._client.sleep(interval)
            with suppress(ChorusError):  # an unreachable hub does not stop the work
                payload = {"lease_id": lease_id, "ttl_ms": round(interval * 1000)}
                await self.send_frame("agent_lease_extend", payload)


SELF_DATED_KINDS = frozenset({"agent_lock_request", "agent_lease_extend", "agent_binding_moment", "agent_handover"})
"""Kinds whose payload says how long they are valid."""


def _horizon_s(frame: Frame) -> float:
    """How long a receiver takes the frame as news (FRM-11, R-104)."""
    ttl_ms = frame.get("ttl_ms")
    if ttl_ms is not None:
        return ttl_ms / 1000
    return math.inf if frame["kind"] in SELF_DATED_KINDS else limits.FRAME_HORIZON_S


class FrameStream:
    """An endless iterator over frames. It drops repeated and stale frames; a `Gap` says that some were missed."""

    def __init__(self, stream: EventStream, is_from_start: bool, clock: Clock) -> None:
        self._stream = stream
        self._seen: OrderedDict[str, None] = OrderedDict()
        # A stream that asks for everything that is kept expects a gap before it.
        self._is_gap_expected = is_from_start
        self._clock = clock

    @property
    def cursor(self) -> str | None:
        return self._stream.last_cursor

    def __aiter__(self) -> FrameStream:
        return self

    async def __anext__(self) -> Frame | Gap:
        while True:
            event = await anext(self._stream)
            if event.name in ("connected", "open-items"):
                continue
            if event.name == "resume-gap":
                is_expected, self._is_gap_expected = self._is_gap_expected, False
                if not is_expected:
                    return Gap()
                continue
            self._is_gap_expected = False
            try:
                frame = cast(Frame, event.json())
                if self._is_new(frame):
                    return frame
            except (KeyError, TypeError, ValueError, UnexpectedAnswer):
                log.warning("a frame of kind %.40r was not understood", event.name)

    def _is_new(self, frame: Frame) -> bool:
        frame_id = frame["frame_id"]
        if frame_id in self._seen:
            return False
        self._seen[frame_id] = None
        if len(self._seen) > limits.MAX_SEEN_FRAMES:
            self._seen.popitem(last=False)
        age = self._clock() - parse_time(frame["created_at"])
        return age.total_seconds() <= _horizon_s(frame)

    async def opened(self) -> None:
        """Waits until the stream is open: from then on no frame is missed."""
        await self._stream.wait_opened()

    async def close(self) -> None:
        await self._stream.close()

    async def __aenter__(self) -> FrameStream:
        return self

    async def __aexit__(self, *reason: object) -> None:
        await self.close()


def _read_answer(frame: Frame) -> FrameAnswer:
    payload = cast(dict[str, Any], frame["payload"])
    return FrameAnswer(
        frame["sender_handle"],
        payload["responder_session_id"],
        payload["response_text"],
        frame["frame_id"],
    )


def scope_handle(scope: str) -> str:
    """The handle that a scope addresses: `~alice` of `~alice/cc-*`, `~acme` of `org:~acme/members/*`."""
    return scope.removeprefix("org:").removeprefix("accord:").partition("/")[0]


def drafter_handle(instrument: str) -> str:
    """R-04: `~cc-editor` for the instruments `editor` and `cc-editor`."""
    return f"~cc-{instrument.lower().removeprefix('cc-')}"[:65]


def parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
