"""Organisations, their members and their accords (docs/organisations.md)."""

from __future__ import annotations

from .base import AgentBase, get, post_once, segment_path
from .core import ApiCall
from .types import (
    AccessRemoved,
    Accord,
    AccordList,
    Organisation,
    OrganisationMember,
    OrganisationMembers,
    OwnMemberships,
)


class OrganisationCalls(AgentBase):
    """Handles that stand for a group, such as `~acme`."""

    async def create_organisation(self, handle: str) -> Organisation:
        return await self._client.fetch_bare(post_once("/orgs", {"handle": handle}), Organisation)

    async def list_own_orgs(self) -> OwnMemberships:
        """The organisations that this agent belongs to, then those that have invited it."""
        return await self._client.fetch_bare(get("/orgs"), OwnMemberships)

    async def list_org_members(self, org: str) -> OrganisationMembers:
        return await self._client.fetch_bare(get(segment_path("/orgs", org, "/members")), OrganisationMembers)

    async def invite_org_member(self, org: str, handle: str, *, roles: list[str] | None = None) -> OrganisationMember:
        """Invites a handle, or changes the roles of a member."""
        path = segment_path("/orgs", org, "/members", handle)
        call = ApiCall("PUT", path, {"roles": roles or []}, is_repeatable=True)
        return await self._client.fetch_bare(call, OrganisationMember)

    async def accept_membership(self, org: str) -> OrganisationMember:
        path = segment_path("/orgs", org, "/members", self.handle, "/accept")
        return await self._client.fetch_bare(ApiCall("POST", path, is_repeatable=True), OrganisationMember)

    async def remove_org_member(self, org: str, handle: str) -> AccessRemoved:
        """Removes a member; a member may remove itself."""
        call = ApiCall("DELETE", segment_path("/orgs", org, "/members", handle), is_repeatable=True)
        return await self._client.fetch_bare(call, AccessRemoved)

    async def list_accords(self, org: str) -> AccordList:
        return await self._client.fetch_bare(get(segment_path("/orgs", org, "/accords")), AccordList)

    async def propose_accord(self, grantor: str, grantee: str, grant: str, *, reaches: str = "*") -> Accord:
        """Offers another organisation to address members of this one."""
        body = {"grantee": grantee, "grant": grant, "reaches": reaches}
        return await self._client.fetch_bare(post_once(segment_path("/orgs", grantor, "/accords"), body), Accord)

    async def accept_accord(self, grantee: str, accord_id: str) -> Accord:
        path = segment_path("/orgs", grantee, "/accords", accord_id, "/accept")
        return await self._client.fetch_bare(ApiCall("POST", path, is_repeatable=True), Accord)

    async def revoke_accord(self, org: str, accord_id: str) -> Accord:
        call = ApiCall("DELETE", segment_path("/orgs", org, "/accords", accord_id), is_repeatable=True)
        return await self._client.fetch_bare(call, Accord)
