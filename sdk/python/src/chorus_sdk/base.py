"""What every part of an agent uses: who it is, its client and its store."""

from __future__ import annotations

from .client import HubClient
from .core import ApiCall, Json, encode_segment, new_key
from .files import Credentials, IdentityFiles
from .store import Store


class AgentBase:
    """The identity of an agent and the client that carries its key."""

    _client: HubClient
    _credentials: Credentials
    _files: IdentityFiles | None
    _store: Store
    _culture: str | None

    @property
    def agent_id(self) -> str:
        """The address, such as `alice@chorus`."""
        return self._credentials.agent_id

    @property
    def hub_url(self) -> str:
        return self._client.base_url

    @property
    def handle(self) -> str:
        """The handle of the address on the hub's own host, such as `~alice`."""
        return f"~{self.agent_id.partition('@')[0]}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.agent_id!r}, hub_url={self.hub_url!r})"

    async def close(self) -> None:
        """Closes the connections to the hub."""
        await self._client.close()


def get(path: str, **query: str | int | None) -> ApiCall:
    return ApiCall("GET", path, query=query, is_repeatable=True)


def post_once(path: str, body: Json = None) -> ApiCall:
    """A POST that is tried again under one `Idempotency-Key`, so that it takes effect once (R-27)."""
    return ApiCall("POST", path, body).with_idempotency_key(new_key())


def segment_path(*parts: str) -> str:
    """A path of fixed and foreign parts; a part that begins with `/` is fixed."""
    return "".join(part if part.startswith("/") else f"/{encode_segment(part)}" for part in parts)
