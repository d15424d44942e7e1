"""Server-Sent Events without a network: a parser, and the laws of a stream that resumes (R-25, SDK-05)."""

from __future__ import annotations

import codecs
import json
import re
from collections import deque
from dataclasses import dataclass

from . import limits
from .core import Backoff, as_object
from .errors import AgentUnregistered, HubError, KeyRotated, UnexpectedAnswer

_CURSOR = re.compile(r"(?:([0-9]{1,19})-)?([0-9]{1,19})", re.ASCII)
FINAL_REASONS = frozenset({"key_rotated", "unregistered"})
CONTROL_EVENTS = frozenset({"connected", "resume-gap"})
"""These name the cursor from which the stream continues, so they do not repeat the event at that cursor (R-52)."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event of a stream. `cursor` is the position after it, which `since=` takes."""

    name: str
    data: str
    cursor: str | None = None
    retry_ms: int | None = None

    def json(self) -> dict[str, object]:
        parsed = as_object(json.loads(self.data))
        if parsed is None:
            raise UnexpectedAnswer(f"the data of an event {self.name!r} is no object")
        return parsed


def parse_cursor(text: str) -> tuple[int, int] | None:
    """A position of the log (`seq`), or of a handle's frame ring (`epoch-seq`)."""
    match = _CURSOR.fullmatch(text)
    return (int(match[1] or 0), int(match[2])) if match else None


class SseReader:
    """Parses events from chunks of any size; lines end in LF, CR or CRLF."""

    def __init__(self, max_event_bytes: int = limits.MAX_EVENT_BYTES) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="strict")
        self._max_event_bytes = max_event_bytes
        self._line = ""
        self._ended_in_cr = False
        self._is_first = True
        self._size = 0
        self._reset_event()

    def _reset_event(self) -> None:
        self._name = ""
        self._id: str | None = None
        self._data: list[str] = []
        self._retry: int | None = None
        self._size = 0

    def read_chunk(self, chunk: bytes) -> list[StreamEvent]:
        try:
            text = self._decoder.decode(chunk)
        except UnicodeDecodeError:
            raise UnexpectedAnswer("the stream is not UTF-8") from None
        if self._ended_in_cr and text:
            text = text.removeprefix("\n")
            self._ended_in_cr = False
        self._ended_in_cr = text.endswith("\r") or (self._ended_in_cr and not text)
        lines = (self._line + text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._line = lines.pop()
        events = [event for line in lines if (event := self._read_line(line)) is not None]
        if self._size + len(self._line) > self._max_event_bytes:
            raise UnexpectedAnswer(f"the stream sent an event of more than {self._max_event_bytes} bytes")
        return events

    def _read_line(self, line: str) -> StreamEvent | None:
        if self._is_first:
            line = line.removeprefix("\ufeff")
            self._is_first = False
        if not line:
            return self._end_event()
        self._size += len(line.encode())
        if self._size > self._max_event_bytes:
            raise UnexpectedAnswer(f"the stream sent an event of more than {self._max_event_bytes} bytes")
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and re.fullmatch("[0-9]{1,9}", value):
            self._retry = int(value)
        return None

    def _end_event(self) -> StreamEvent | None:
        # A lone `retry` carries no event, but its pause counts.
        has_event = bool(self._data or self._name or self._retry is not None)
        event = StreamEvent(self._name or "message", "\n".join(self._data), self._id, self._retry)
        self._reset_event()
        return event if has_event else None


class ResumeState:
    """Where a stream stands: what was handed out, what comes next, and when to connect again."""

    def __init__(self, since: str | None, backoff: Backoff) -> None:
        self.last_cursor = since
        self.connected_at: str | None = None
        self.is_opened = False
        self._backoff = backoff
        self._failures = 0
        self._retry_s = 0.0
        self._final_reason: str | None = None
        self._pending: deque[StreamEvent] = deque()

    def feed(self, events: list[StreamEvent]) -> None:
        self._pending.extend(events)
        self.is_opened = self.is_opened or any(event.name == "connected" for event in events)

    def drop_pending(self) -> None:
        """Events that were read but not handed out come again from the hub."""
        self._pending.clear()

    def next_event(self) -> StreamEvent | None:
        """The next event to hand out; repeats and control lines are dropped."""
        while self._pending:
            event = self._pending.popleft()
            if self._accept(event):
                return event
        return None

    def _accept(self, event: StreamEvent) -> bool:
        self._failures = 0  # The connection works, so the backoff starts again.
        if event.retry_ms is not None:
            self._retry_s = min(event.retry_ms / 1000, limits.MAX_RETRY_AFTER_S)
        if event.name == "closing":
            reason = _text_field(event, "reason")
            self._final_reason = reason if reason in FINAL_REASONS else None
            return False
        if event.name == "message" and not event.data:
            return False  # the block of a lone `retry`
        position = parse_cursor(event.cursor) if event.cursor else None
        if position is not None:
            last = parse_cursor(self.last_cursor) if self.last_cursor else None
            is_repeated = last is not None and position[0] == last[0] and position[1] <= last[1]
            if is_repeated and event.name not in CONTROL_EVENTS:
                return False
            self.last_cursor = event.cursor
        if event.name == "connected" and self.connected_at is None:
            self.connected_at = _text_field(event, "timestamp")
        return True

    def raise_if_final(self) -> None:
        if self._final_reason == "unregistered":
            raise AgentUnregistered("the agent was unregistered", code="unregistered", status=401)
        if self._final_reason is not None:
            raise KeyRotated("the key is no longer valid", code="key_rotated", status=401)

    def delay_after_failure(self, error: Exception | None = None) -> float:
        """How long to wait before the next connection."""
        self._failures += 1
        wait = max(
            self._backoff.delay_after(self._failures),
            self._retry_s * (1 + self._backoff.random() / 2),
        )
        asked = error.retry_after if isinstance(error, HubError) else None
        return max(wait, min(asked or 0.0, limits.MAX_RETRY_AFTER_S))


def _text_field(event: StreamEvent, name: str) -> str | None:
    try:
        value = event.json().get(name)
    except (ValueError, UnexpectedAnswer):
        return None
    return value if isinstance(value, str) else None
