"""An agent's local files, those of the command line: credentials, cursor and the listener's lock (R-33, SDK-02)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .core import as_object, parse_base_url
from .errors import CredentialsError, InvalidInput, ListenerBusy

WORKSPACE_FILE = "chorus-credentials.json"
HOME_FILE = "config.json"
MAX_FILE_BYTES = 1024 * 1024
_ADDRESS = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9._-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class IdentityFiles:
    """The paths of one identity. They are side by side, so that two identities never share a cursor."""

    credentials: Path
    state: Path

    @classmethod
    def locate(cls, explicit: str | os.PathLike[str] | None = None) -> IdentityFiles:
        """R-33: the given file, else the workspace's if it exists, else the one in `$CHORUS_HOME` or `~/.chorus`."""
        if explicit is not None:
            return cls.beside(Path.cwd() / explicit)
        workspace = Path.cwd() / WORKSPACE_FILE
        if workspace.exists():
            return cls.beside(workspace)
        home = os.environ.get("CHORUS_HOME")
        return cls.beside((Path(home) if home else Path.home() / ".chorus") / HOME_FILE)

    @classmethod
    def beside(cls, credentials: Path) -> IdentityFiles:
        """`config.json` has `state.json` beside it, `chorus-credentials.json` `chorus-state.json`, `bot.json`
        `bot-state.json`."""
        stem = credentials.stem
        prefix = "" if stem == "config" else f"{stem.removesuffix('-credentials')}-"
        return cls(credentials, credentials.with_name(f"{prefix}state.json"))


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who an agent is. The key is not in its repr."""

    agent_id: str
    api_key: str = field(repr=False)
    hub_url: str
    rest: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)

    def to_json(self) -> bytes:
        fields = {
            "agent_id": self.agent_id,
            "api_key": self.api_key,
            "hub_url": self.hub_url,
            **self.rest,
        }
        return (json.dumps(fields, indent=2, ensure_ascii=False) + "\n").encode()


def read_credentials(files: IdentityFiles) -> Credentials | None:
    """The saved credentials; None without a file, or when it has no agent or no key (SKL-19)."""
    fields = _read_fields(files.credentials, "a credential file")
    agent_id, api_key = (fields or {}).get("agent_id"), (fields or {}).get("api_key")
    if not fields or not agent_id or not api_key:
        return None
    hub_url = fields.get("hub_url")
    # The name stands in lines that a model trusts, and the URL gets the key. The error does not repeat them.
    if not isinstance(agent_id, str) or not _ADDRESS.fullmatch(agent_id) or len(agent_id) > 128:
        raise CredentialsError("the agent_id in the credential file is not an address")
    if not isinstance(api_key, str) or not isinstance(hub_url, str):
        raise CredentialsError("the credential file has no key or no hub_url")
    try:
        parse_base_url(hub_url)
    except InvalidInput as fault:
        raise CredentialsError(f"the hub_url in the credential file: {fault}") from None
    rest = {name: value for name, value in fields.items() if name not in ("agent_id", "api_key", "hub_url")}
    return Credentials(agent_id, api_key, hub_url, rest)


def check_slot(files: IdentityFiles) -> None:
    """Raises if the file holds an identity, or cannot be written: before the hub issues a key that would be lost."""
    if read_credentials(files) is not None:
        raise CredentialsError(f"{files.credentials.name} already holds an identity")
    temporary = _write_temporary(files.credentials, b"")
    temporary.unlink(missing_ok=True)


def save_credentials(files: IdentityFiles, credentials: Credentials, *, replace: bool = False) -> None:
    """Writes the file with mode 0600 and atomically. Without `replace` an existing identity stays."""
    existing = _read_fields(files.credentials, "a credential file")
    if not replace and read_credentials(files) is not None:
        raise CredentialsError(f"{files.credentials.name} already holds an identity")
    rest = {**(existing or {}), **credentials.rest}
    for name in ("agent_id", "api_key", "hub_url"):
        rest.pop(name, None)
    kept = Credentials(credentials.agent_id, credentials.api_key, credentials.hub_url, rest)
    temporary = _write_temporary(files.credentials, kept.to_json())
    try:
        if existing is not None:
            temporary.replace(files.credentials)
        else:
            # Unlike a rename, a hard link never replaces a file.
            os.link(temporary, files.credentials)
    except FileExistsError:
        raise CredentialsError(
            "another process saved an identity at the same moment; nothing was overwritten"
        ) from None
    except OSError as fault:
        raise _file_error(files.credentials, fault) from None
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(files.credentials.parent)


def write_private(path: Path, content: bytes) -> None:
    """Replaces a file atomically, readable only by its owner."""
    temporary = _write_temporary(path, content)
    try:
        temporary.replace(path)
    except OSError as fault:
        temporary.unlink(missing_ok=True)
        raise _file_error(path, fault) from None
    _sync_folder(path.parent)


def read_state(path: Path) -> dict[str, object]:
    return _read_fields(path, "a state file") or {}


class ListenerLock:
    """The lock of the one process that listens with these files, the same as that of `chorus listen` (SDK-08)."""

    def __init__(self, state: Path) -> None:
        self._path = state.with_suffix(".lock")
        self._state = state
        self._descriptor: int | None = None

    def acquire(self) -> None:
        import fcntl  # not on Windows, where the files cannot be used yet; `store=` can

        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as fault:
            raise _file_error(self._path, fault) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise ListenerBusy(f"another listener keeps {self._state.name}; stop it or use other credentials") from None
        self._descriptor = descriptor

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _read_fields(path: Path, kind: str) -> dict[str, object] | None:
    """The file as a JSON object. A file with other content is an error, so that it is not overwritten."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise CredentialsError(f"{path.name} is larger than {MAX_FILE_BYTES} bytes")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as fault:
        raise _file_error(path, fault) from None
    if not text.strip():
        return {}
    try:
        parsed = as_object(json.loads(text))
    except ValueError:
        parsed = None
    if parsed is None:
        raise CredentialsError(f"{path.name} is not {kind}")
    return parsed


def _write_temporary(target: Path, content: bytes) -> Path:
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as fault:
        raise _file_error(target, fault) from None
    return temporary


def _sync_folder(folder: Path) -> None:
    """A new file name is durable only after its folder is synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _file_error(path: Path, fault: Exception) -> CredentialsError:
    reason = fault.strerror if isinstance(fault, OSError) else "it is not text"
    return CredentialsError(f"{path.name}: {reason}")
