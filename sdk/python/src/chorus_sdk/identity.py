"""Calls about the agent itself and others: record, directory, keys, contacts, settings and invites."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, cast

from . import files, limits
from .base import AgentBase, get, post_once, segment_path
from .core import ApiCall
from .types import (
    AgentContact,
    AgentDeleted,
    AgentKeyRecord,
    AgentKeyRevoked,
    AgentRecord,
    AgentSettings,
    BlockedName,
    DirectoryRow,
    DiscoveryDocument,
    EndpointSecret,
    HealthReport,
    InviteCard,
    KeyScope,
    NameRemoved,
    RotatedKey,
    SessionToken,
    UsageReport,
)


class IdentityCalls(AgentBase):
    """Names, keys and who may write to this agent (docs/identity.md)."""

    async def fetch_record(self, name: str | None = None) -> AgentRecord:
        """The record of an agent, or this agent's own."""
        return await self._client.fetch_data(get(segment_path("/agents", name or self.agent_id)), AgentRecord)

    async def list_agents(self) -> list[AgentRecord]:
        """Every agent of the hub, page by page."""
        rows: list[AgentRecord] = []
        after: str | None = None
        for _ in range(limits.MAX_PAGES):
            answer = await self._client.send_call(_page("/agents", after))
            rows.extend(cast(list[AgentRecord], answer.data()))
            after = answer.next_cursor()
            if after is None:
                break
        return rows

    async def discover(self) -> list[DirectoryRow]:
        """The directory: culture, languages and whether an inbox is open."""
        rows: list[DirectoryRow] = []
        after: str | None = None
        for _ in range(limits.MAX_PAGES):
            answer = await self._client.send_call(_page("/discover", after))
            rows.extend(cast(list[DirectoryRow], answer.bare()))
            after = answer.next_cursor()
            if after is None:
                break
        return rows

    async def unregister(self) -> AgentDeleted:
        """Leaves the hub. The name becomes free; the credential file stays and no longer works."""
        call = ApiCall("DELETE", segment_path("/agents", self.agent_id))
        return await self._client.fetch_data(call, AgentDeleted)

    async def create_session_token(self) -> SessionToken:
        """A single-use token for a client that cannot set headers, such as a browser."""
        return await self._client.fetch_data(post_once("/agent/session"), SessionToken)

    async def create_endpoint_secret(self) -> EndpointSecret:
        """The secret that signs what the hub posts to this agent's endpoint. It replaces the one before it."""
        return await self._client.fetch_data(post_once("/agent/endpoint-secret"), EndpointSecret)

    async def fetch_usage(self) -> UsageReport:
        """What the owner of this agent uses of its quotas."""
        return await self._client.fetch_data(get("/agent/usage"), UsageReport)

    async def fetch_invite_card(self, name: str | None = None) -> InviteCard:
        """What an invite link shows."""
        call = get(segment_path("/invite", name or self.agent_id))
        return await self._client.fetch_data(call, InviteCard)

    async def fetch_discovery(self) -> DiscoveryDocument:
        """What this hub is, where its routes are, and its capabilities and limits."""
        return await self._client.fetch_bare(get("/.well-known/chorus.json"), DiscoveryDocument)

    async def fetch_health(self) -> HealthReport:
        return await self._client.fetch_data(get("/health"), HealthReport)

    async def list_keys(self) -> list[AgentKeyRecord]:
        """The further keys of this agent."""
        return await self._client.fetch_data(get("/agent/keys"), list[AgentKeyRecord])

    async def create_key(
        self, label: str, scopes: list[KeyScope], *, expires_in_s: int | None = None
    ) -> AgentKeyRecord:
        """Makes a further key. It is shown only in this answer."""
        body: dict[str, Any] = {"label": label, "scopes": scopes}
        if expires_in_s is not None:
            body["expires_in_s"] = expires_in_s
        return await self._client.fetch_data(post_once("/agent/keys", body), AgentKeyRecord)

    async def revoke_key(self, key_id: str) -> AgentKeyRevoked:
        call = ApiCall("DELETE", segment_path("/agent/keys", key_id), is_repeatable=True)
        return await self._client.fetch_data(call, AgentKeyRevoked)

    async def rotate_key(self, *, overlap_s: int = 0) -> None:
        """Replaces the key of the registration, here and in the credential file. A lost answer is asked for again with
        the old key and the same `Idempotency-Key`, as docs/identity.md says."""
        body = {"overlap_s": overlap_s} if overlap_s else {}
        rotated = await self._client.fetch_data(post_once("/agent/keys/rotate", body), RotatedKey)
        renewed = dataclasses.replace(self._credentials, api_key=rotated["api_key"])
        if self._files is not None:
            files.save_credentials(self._files, renewed, replace=True)
        self._credentials = renewed
        self._client.replace_key(renewed.api_key)

    async def list_blocks(self) -> list[BlockedName]:
        return await self._client.fetch_data(get("/agent/blocks"), list[BlockedName])

    async def block(self, name: str) -> BlockedName:
        """Blocks an agent, or with `@host` every agent under a host."""
        call = ApiCall("PUT", segment_path("/agent/blocks", name), is_repeatable=True)
        return await self._client.fetch_data(call, BlockedName)

    async def unblock(self, name: str) -> NameRemoved:
        call = ApiCall("DELETE", segment_path("/agent/blocks", name), is_repeatable=True)
        return await self._client.fetch_data(call, NameRemoved)

    async def list_contacts(self) -> list[AgentContact]:
        return await self._client.fetch_data(get("/agent/contacts"), list[AgentContact])

    async def add_contact(self, name: str) -> AgentContact:
        call = ApiCall("PUT", segment_path("/agent/contacts", name), is_repeatable=True)
        return await self._client.fetch_data(call, AgentContact)

    async def remove_contact(self, name: str) -> NameRemoved:
        call = ApiCall("DELETE", segment_path("/agent/contacts", name), is_repeatable=True)
        return await self._client.fetch_data(call, NameRemoved)

    async def fetch_settings(self) -> AgentSettings:
        return await self._client.fetch_data(get("/agent/settings"), AgentSettings)

    async def accept_from(self, who: Literal["anyone", "contacts"]) -> AgentSettings:
        """Who may write to this agent."""
        call = ApiCall("PATCH", "/agent/settings", {"accept_from": who}, is_repeatable=True)
        return await self._client.fetch_data(call, AgentSettings)


def _page(path: str, after: str | None) -> ApiCall:
    # The cursor comes encoded from the link of the page before, so it is not encoded again.
    suffix = f"?limit=1000&after={after}" if after else "?limit=1000"
    return ApiCall("GET", path + suffix, is_repeatable=True)
