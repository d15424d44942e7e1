//! Who claims which resource right now, told from the three lock kinds (FRM-23…27): the hub keeps no such table.

use crate::limits;
use chorus_wire::frame::{Frame, Payload, payload};
use chorus_wire::{identity::Handle, time::UnixMicros};
use serde::Serialize;
use std::{collections::HashMap, time::Duration};
use uuid::Uuid;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockClaim {
    pub resource: String,
    pub holder: Handle,
    /// `instrument@session`, where the frame said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub drafted_with: String,
    pub lease_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    pub expires_at: UnixMicros,
    /// In which order the claims were made: of two on one resource the first stands.
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

/// Claims by who made them and their lease: another's frame with the same lease id changes nothing of ours.
#[derive(Debug, Default)]
pub struct LockClaims {
    by_lease: HashMap<(Handle, Uuid), LockClaim>,
    last_order: u64,
}

impl LockClaims {
    /// Takes in a frame of any kind, in the order in which frames come.
    pub fn apply_frame(&mut self, frame: &Frame) {
        let key_of = |lease: Uuid| (frame.sender_handle.clone(), lease);
        if let Payload::AgentLockRequest(request) = &frame.payload {
            self.apply_request(frame, request);
        } else if let Payload::AgentLeaseExtend(extend) = &frame.payload {
            if let Some(claim) = self.by_lease.get_mut(&key_of(extend.lease_id)) {
                claim.expires_at = claim
                    .expires_at
                    .saturating_add(Duration::from_millis(extend.ttl_ms));
            }
        } else if let Payload::AgentLockRelease(release) = &frame.payload {
            self.by_lease.remove(&key_of(release.lease_id));
        }
    }

    /// The same lease again is the same claim, said again for those who came later.
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

    /// Those that have not run out, by resource, the first claim first.
    pub fn active_claims(&self, now: UnixMicros) -> Vec<&LockClaim> {
        let mut claims: Vec<&LockClaim> = self
            .by_lease
            .values()
            .filter(|claim| claim.expires_at > now)
            .collect();
        claims.sort_by(|a, b| (&a.resource, a.order).cmp(&(&b.resource, b.order)));
        claims
    }

    /// The claims that stand in the way of `resource`.
    pub fn claims_on(&self, resource: &str, now: UnixMicros) -> Vec<&LockClaim> {
        let mut claims = self.active_claims(now);
        claims.retain(|claim| {
            covers_resource(&claim.resource, resource) || covers_resource(resource, &claim.resource)
        });
        claims
    }
}

/// A claim on a folder is one on everything in it.
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

    fn said(who: &str, seconds: i64, payload: impl Into<Payload>) -> Frame {
        let ident = |text| ScopeIdent::parse(text).unwrap();
        let speaker = FrameSender::new(Handle::parse(who).unwrap(), ident("cli"), ident("s1"));
        speaker
            .draft_frame(&speaker.handle_scope(), payload.into(), at(seconds))
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
    fn a_claim_lasts_until_it_runs_out_is_extended_or_released() {
        let (mut claims, id) = (LockClaims::default(), lease());
        claims.apply_frame(&said("~alice", 0, request(id, "main.rs")));
        assert_eq!(claims.active_claims(at(59)).len(), 1);
        assert!(claims.active_claims(at(60)).is_empty());
        claims.apply_frame(&said(
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
        claims.apply_frame(&said(
            "~alice",
            40,
            payload::AgentLockRelease {
                lease_id: id,
                resource: None,
            },
        ));
        assert!(claims.active_claims(at(41)).is_empty());
    }

    // FRM-26: frames about leases that nobody heard of are no news.
    #[test]
    fn only_the_one_who_claimed_can_extend_or_release() {
        let (mut claims, id) = (LockClaims::default(), lease());
        claims.apply_frame(&said(
            "~mallory",
            0,
            payload::AgentLockRelease {
                lease_id: id,
                resource: None,
            },
        ));
        claims.apply_frame(&said("~alice", 0, request(id, "main.rs")));
        claims.apply_frame(&said(
            "~mallory",
            1,
            payload::AgentLockRelease {
                lease_id: id,
                resource: None,
            },
        ));
        claims.apply_frame(&said(
            "~mallory",
            1,
            payload::AgentLeaseExtend {
                lease_id: id,
                ttl_ms: MINUTE,
            },
        ));
        claims.apply_frame(&said("~mallory", 1, request(id, "other.rs")));
        let held = claims.active_claims(at(2));
        assert_eq!((held.len(), held[0].expires_at), (2, at(60)));
        assert_eq!(
            (held[0].resource.as_str(), held[0].holder.as_str()),
            ("main.rs", "~alice")
        );
    }

    #[test]
    fn of_two_claims_the_first_stands_also_when_it_is_said_again() {
        let (mut claims, first, second) = (LockClaims::default(), lease(), lease());
        claims.apply_frame(&said("~alice", 0, request(first, "main.rs")));
        claims.apply_frame(&said("~alice", 1, request(second, "main.rs")));
        claims.apply_frame(&said("~alice", 2, request(first, "main.rs")));
        let held = claims.claims_on("main.rs", at(3));
        assert_eq!(
            held.iter().map(|claim| claim.lease_id).collect::<Vec<_>>(),
            [first, second]
        );
        assert_eq!(held[0].expires_at, at(62));
    }

    #[test]
    fn a_claim_on_a_folder_is_one_on_what_is_in_it() {
        for (claimed, resource, both) in [
            ("src", "src/main.rs", true),
            ("src/", "src/main.rs", true),
            ("src/main.rs", "src/main.rs", true),
            ("src", "srcs/main.rs", false),
            ("src/main.rs", "src/main", false),
            ("", "src", false),
        ] {
            assert_eq!(
                covers_resource(claimed, resource),
                both,
                "{claimed} {resource}"
            );
        }
    }
}
