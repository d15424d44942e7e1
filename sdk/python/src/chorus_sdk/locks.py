"""The lock claims that are active, computed from frames; the hub keeps no table of locks (FRM-23…27)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from . import limits

if TYPE_CHECKING:
    from .frame import Gap
    from .types import Frame


@dataclass(frozen=True, slots=True)
class LockClaim:
    """A claim on a resource. Of two on one resource the one with the lower order holds."""

    resource: str
    holder: str
    lease_id: str
    expires_at: datetime
    order: int


class LockClaims:
    """Claims by holder and lease: a frame of another handle with the same lease id changes nothing."""

    def __init__(self) -> None:
        self._by_lease: dict[tuple[str, str], LockClaim] = {}
        self._last_order = 0

    def apply_frame(self, frame: Frame | Gap) -> None:
        if not isinstance(frame, dict):
            return
        payload = cast(dict[str, Any], frame["payload"])
        key = (frame["sender_handle"], str(payload.get("lease_id")))
        if frame["kind"] == "agent_lock_request":
            self._apply_request(frame, key, payload)
        elif frame["kind"] == "agent_lease_extend" and key in self._by_lease:
            claim = self._by_lease[key]
            more = timedelta(milliseconds=payload["ttl_ms"])
            self._by_lease[key] = replace(claim, expires_at=claim.expires_at + more)
        elif frame["kind"] == "agent_lock_release":
            self._by_lease.pop(key, None)

    def _apply_request(self, frame: Frame, key: tuple[str, str], payload: dict[str, Any]) -> None:
        """A repeated lease is the same claim, announced again for sessions that joined later."""
        created = datetime.fromisoformat(frame["created_at"].replace("Z", "+00:00"))
        earlier = self._by_lease.get(key)
        is_same = earlier is not None and earlier.resource == payload["resource"] and earlier.expires_at > created
        self._last_order += 1
        order = earlier.order if earlier is not None and is_same else self._last_order
        expires_at = created + timedelta(milliseconds=payload["ttl_ms"])
        self._by_lease[key] = LockClaim(payload["resource"], key[0], key[1], expires_at, order)
        if len(self._by_lease) > limits.MAX_LOCK_CLAIMS:
            first = min(self._by_lease, key=lambda one: self._by_lease[one].expires_at)
            del self._by_lease[first]

    def remove(self, holder: str, lease_id: str) -> None:
        self._by_lease.pop((holder, lease_id), None)

    def has_lease(self, lease_id: str) -> bool:
        return any(lease == lease_id for _, lease in self._by_lease)

    def first_on(self, resource: str, now: datetime) -> LockClaim | None:
        """The claim that holds the resource, or a folder of it."""
        active = [
            claim
            for claim in self._by_lease.values()
            if claim.expires_at > now
            and (covers_resource(claim.resource, resource) or covers_resource(resource, claim.resource))
        ]
        return min(active, key=lambda claim: claim.order, default=None)

    def has_earlier(self, resource: str, lease_id: str, now: datetime) -> bool:
        first = self.first_on(resource, now)
        return first is not None and first.lease_id != lease_id


def covers_resource(claimed: str, resource: str) -> bool:
    """Whether a claim covers a resource; a claim on a folder covers everything in it."""
    folder = claimed.removesuffix("/")
    return resource in (claimed, folder) or (bool(folder) and resource.startswith(f"{folder}/"))
