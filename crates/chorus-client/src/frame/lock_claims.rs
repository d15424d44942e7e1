//! The lock claims that are active now, computed from the three lock frame kinds (FRM-23…27); the hub keeps no lock table.

use crate::limits;
use chorus_wire::frame::{Frame, FramePayload, payload};
use chorus_wire::{identity::Handle, time::UnixMicros};
use serde::Serialize;
use std::{collections::HashMap, time::Duration};
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockClaim {
    pub resource: String,
    pub holder: Handle,
    /// `instrument@session`, if the frame names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub drafted_with: String,
    pub lease_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    pub expires_at: UnixMicros,
    /// The order in which claims were made: of two on one resource the first one holds.
    #[serde(skip)]
    pub order: u64,
}

impl LockClaim {
    pub fn time_left(&self, now: UnixMicros) -> Duration {
        Duration::from_micros(
            u64::try_from(self.expires_at.0.saturating_sub(now.0)).unwrap_or_default(),
        )
    }
}

/// Claims by holder and lease: a frame of another handle with the same lease id changes nothing.
#[derive(Debug, Default)]
pub struct LockClaims {
    by_lease: HashMap<(Handle, Uuid), LockClaim>,
    last_order: u64,
}

impl LockClaims {
    /// Applies a frame of any kind; call it in the order of the stream.
    pub fn apply_frame(&mut self, frame: &Frame) {
        let key_of = |lease: Uuid| (frame.sender_handle.clone(), lease);
        if let FramePayload::AgentLockRequest(request) = &frame.payload {
            self.apply_request(frame, request);
        } else if let FramePayload::AgentLeaseExtend(extend) = &frame.payload {
            if let Some(claim) = self.by_lease.get_mut(&key_of(extend.lease_id)) {
                claim.expires_at = claim
                    .expires_at
                    .saturating_add(Duration::from_millis(extend.ttl_ms));
            }
        } else if let FramePayload::AgentLockRelease(release) = &frame.payload {
            self.by_lease.remove(&key_of(release.lease_id));
        }
    }

    /// A repeated lease is the same claim, announced again for sessions that joined later.
    fn apply_request(&mut self, frame: &Frame, request: &payload::AgentLockRequest) {
        let key = (frame.sender_handle.clone(), request.lease_id);
        let earlier = self
            .by_lease
            .get(&key)
            .filter(|claim| claim.resource == request.resource);
        let earlier_order = earlier
            .filter(|claim| claim.expires_at > frame.created_at)
            .map(|claim| claim.order);
        self.last_order += 1;
        let claim = LockClaim {
            resource: request.resource.clone(),
            holder: frame.sender_handle.clone(),
            session: super::frame_session(frame)
                .map(|(instrument, session)| format!("{instrument}@{session}")),
            drafted_with: frame.drafted_with.clone(),
            lease_id: request.lease_id,
            intent: request.intent.clone().filter(|intent| !intent.is_empty()),
            expires_at: frame
                .created_at
                .saturating_add(Duration::from_millis(request.ttl_ms)),
            order: earlier_order.unwrap_or(self.last_order),
        };
        self.by_lease.insert(key, claim);
        if self.by_lease.len() > limits::MAX_LOCK_CLAIMS {
            let first_to_expire = self
                .by_lease
                .iter()
                .min_by_key(|(_, claim)| claim.expires_at)
                .map(|(key, _)| key.clone());
            first_to_expire.map(|key| self.by_lease.remove(&key));
        }
    }

    /// Claims that have not expired, by resource, the first claim first.
    pub fn active_claims(&self, now: UnixMicros) -> Vec<&LockClaim> {
        let mut claims: Vec<&LockClaim> = self
            .by_lease
            .values()
            .filter(|claim| claim.expires_at > now)
            .collect();
        claims.sort_by(|a, b| (&a.resource, a.order).cmp(&(&b.resource, b.order)));
        claims
    }

    /// The claims that conflict with `resource`.
    pub fn claims_on(&self, resource: &str, now: UnixMicros) -> Vec<&LockClaim> {
        let mut claims = self.active_claims(now);
        claims.retain(|claim| {
            covers_resource(&claim.resource, resource) || covers_resource(resource, &claim.resource)
        });
        claims
    }
}

/// Whether a claim covers a resource; a claim on a folder covers everything in it.
pub fn covers_resource(claimed: &str, resource: &str) -> bool {
    let folder = claimed.strip_suffix('/').unwrap_or(claimed);
    match resource.strip_prefix(folder) {
        Some("") => true,
        Some(rest) => !folder.is_empty() && rest.starts_with('/'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameSender;
    use chorus_wire::frame::ScopeIdent;

    const MINUTE: u64 = 60_000;

    fn at(seconds: i64) -> UnixMicros {
        UnixMicros(seconds * 1_000_000)
    }

    fn frame_from(handle: &str, seconds: i64, payload: impl Into<FramePayload>) -> Frame {
        let ident = |text| ScopeIdent::parse(text).unwrap();
        let sender = FrameSender::new(Handle::parse(handle).unwrap(), ident("cli"), ident("s1"));
        sender
            .draft_frame(&sender.handle_scope(), payload.into(), at(seconds))
            .to_frame()
            .unwrap()
    }

    fn request(lease_id: Uuid, resource: &str) -> payload::AgentLockRequest {
        payload::AgentLockRequest {
            resource: resource.into(),
            lease_id,
            ttl_ms: MINUTE,
            intent: None,
        }
    }

    fn lease() -> Uuid {
        crate::frame::random_uuid()
    }

    // FRM-27
    #[test]
    fn a_claim_lasts_until_it_expires_or_is_released() {
        let mut claims = LockClaims::default();
        let id = lease();
        claims.apply_frame(&frame_from("~alice", 0, request(id, "main.rs")));
        assert_eq!(claims.active_claims(at(59)).len(), 1);
        assert!(claims.active_claims(at(60)).is_empty());
        claims.apply_frame(&frame_from(
            "~alice",
            30,
            payload::AgentLeaseExtend {
                lease_id: id,
                ttl_ms: MINUTE,
            },
        ));
        assert_eq!(
            claims.active_claims(at(119))[0].time_left(at(119)),
            Duration::from_secs(1)
        );
        claims.apply_frame(&frame_from(
            "~alice",
            40,
            payload::AgentLockRelease {
                lease_id: id,
                resource: None,
            },
        ));
        assert!(claims.active_claims(at(41)).is_empty());
    }

    // FRM-26: frames about unknown leases are ignored.
    #[test]
    fn only_the_holder_can_extend_or_release_a_claim() {
        let mut claims = LockClaims::default();
        let id = lease();
        claims.apply_frame(&frame_from(
            "~mallory",
            0,
            payload::AgentLockRelease {
                lease_id: id,
                resource: None,
            },
        ));
        claims.apply_frame(&frame_from("~alice", 0, request(id, "main.rs")));
        claims.apply_frame(&frame_from(
            "~mallory",
            1,
            payload::AgentLockRelease {
                lease_id: id,
                resource: None,
            },
        ));
        claims.apply_frame(&frame_from(
            "~mallory",
            1,
            payload::AgentLeaseExtend {
                lease_id: id,
                ttl_ms: MINUTE,
            },
        ));
        claims.apply_frame(&frame_from("~mallory", 1, request(id, "other.rs")));
        let held = claims.active_claims(at(2));
        assert_eq!((held.len(), held[0].expires_at), (2, at(60)));
        assert_eq!(
            (held[0].resource.as_str(), held[0].holder.as_str()),
            ("main.rs", "~alice")
        );
    }

    #[test]
    fn of_two_claims_the_first_holds_even_after_it_is_repeated() {
        let mut claims = LockClaims::default();
        let first = lease();
        let second = lease();
        claims.apply_frame(&frame_from("~alice", 0, request(first, "main.rs")));
        claims.apply_frame(&frame_from("~alice", 1, request(second, "main.rs")));
        claims.apply_frame(&frame_from("~alice", 2, request(first, "main.rs")));
        let held = claims.claims_on("main.rs", at(3));
        assert_eq!(
            held.iter().map(|claim| claim.lease_id).collect::<Vec<_>>(),
            [first, second]
        );
        assert_eq!(held[0].expires_at, at(62));
    }

    #[test]
    fn a_claim_on_a_folder_covers_its_files() {
        for (claimed, resource, expected) in [
            ("src", "src/main.rs", true),
            ("src/", "src/main.rs", true),
            ("src/main.rs", "src/main.rs", true),
            ("src", "srcs/main.rs", false),
            ("src/main.rs", "src/main", false),
            ("", "src", false),
        ] {
            assert_eq!(
                covers_resource(claimed, resource),
                expected,
                "{claimed} {resource}"
            );
        }
    }
}
