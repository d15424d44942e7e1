"""Where an agent keeps its cursor: in the files of the command line, in memory, or in a store of yours (SDK-08)."""

from __future__ import annotations

import json
from typing import Protocol

from .files import Credentials, IdentityFiles, ListenerLock, read_state, write_private


class Store(Protocol):
    """Keeps the position of one agent. An implementation may use a database; it is called from the event loop's thread,
    so a slow one should keep its own thread or be quick."""

    def acquire(self) -> None:
        """Takes the right to listen, or raises `ListenerBusy`."""
        ...

    def release(self) -> None: ...

    def cursor(self) -> str | None:
        """Everything up to here is handled."""
        ...

    def save_cursor(self, cursor: str) -> None: ...


class MemoryStore:
    """Keeps the position as long as the process lives."""

    def __init__(self, cursor: str | None = None) -> None:
        self._cursor = cursor

    def acquire(self) -> None:
        """Every process has its own memory, so there is nothing to share."""

    def release(self) -> None:
        """See `acquire`."""

    def cursor(self) -> str | None:
        return self._cursor

    def save_cursor(self, cursor: str) -> None:
        self._cursor = cursor


class FileStore:
    """The state file beside the credentials, as `chorus listen` writes it."""

    def __init__(self, files: IdentityFiles, credentials: Credentials) -> None:
        self._path = files.state
        self._lock = ListenerLock(files.state)
        self._own = {"agent_id": credentials.agent_id, "hub_url": credentials.hub_url}
        self._fields = self._read()

    def _read(self) -> dict[str, object]:
        saved = read_state(self._path)
        is_own = all(saved.get(name) == value for name, value in self._own.items())
        return saved if is_own else dict(self._own)

    def acquire(self) -> None:
        self._lock.acquire()
        self._fields = self._read()  # another listener may have moved on

    def release(self) -> None:
        self._lock.release()

    def cursor(self) -> str | None:
        cursor = self._fields.get("cursor")
        return cursor if isinstance(cursor, str) else None

    def save_cursor(self, cursor: str) -> None:
        self._fields["cursor"] = cursor
        self._save()

    def culture(self) -> str | None:
        """The culture of the agent's user, as the command line registered it."""
        culture = self._fields.get("culture")
        return culture if isinstance(culture, str) else None

    def save_culture(self, culture: str) -> None:
        self._fields["culture"] = culture

    def _save(self) -> None:
        write_private(self._path, (json.dumps(self._fields) + "\n").encode())
