//! Finds conflicting claims by replaying the lock frames in the handle's ring: the hub keeps no table of claims (FRM-23…27).

use super::recent_frames::replay_frames;
use super::sender::FrameSender;
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_wire::cursor::ResumePoint;
use chorus_wire::frame::FrameKind;
use chorus_wire::time::UnixMicros;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;
use utoipa::ToSchema;

/// A claim that stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ResourceClaim {
    #[schema(example = "~alice")]
    pub holder: String,
    pub resource: String,
    pub lease_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: UnixMicros,
    /// The session that claimed it, where its frame says so.
    #[serde(skip)]
    basis: String,
}

impl ResourceClaim {
    /// Whether the sender's own session made the claim.
    pub fn is_made_by(&self, sender: &FrameSender) -> bool {
        self.holder == sender.handle.as_str()
            && sender
                .provenance_basis()
                .is_some_and(|basis| self.basis == basis)
    }
}

/// The live claims that overlap `resource`, oldest first. Claims older than the ring are not seen.
pub async fn find_conflicting_claims(
    call: &ToolCall,
    sender: &FrameSender,
    resource: &str,
) -> Result<Vec<ResourceClaim>, ToolError> {
    let mut claims = ClaimIndex::default();
    // An unknown id makes the stream replay the whole ring.
    replay_frames(call, sender, None, ResumePoint::Unknown, |event| {
        if let Some(kind) = FrameKind::parse(&event.name) {
            claims.apply_lock_frame(kind, &event.data);
        }
    })
    .await?;
    let now = call.state.hub.clock().now();
    let mut claims = claims.into_claims();
    claims.retain(|claim| claim.expires_at > now && resources_overlap(&claim.resource, resource));
    Ok(claims)
}

/// The claims of a replay in the order in which they were first made, found by holder and lease: a search through all of them
/// for each frame would take a time that grows with the square of the ring.
#[derive(Default)]
struct ClaimIndex {
    /// `None` where a claim was released.
    claims: Vec<Option<ResourceClaim>>,
    by_lease: HashMap<(String, String), usize>,
}

impl ClaimIndex {
    fn into_claims(self) -> Vec<ResourceClaim> {
        self.claims.into_iter().flatten().collect()
    }

    fn apply_lock_frame(&mut self, kind: FrameKind, frame: &str) {
        if !matches!(
            kind,
            FrameKind::AgentLockRequest | FrameKind::AgentLockRelease | FrameKind::AgentLeaseExtend
        ) {
            return;
        }
        let Ok(frame) = serde_json::from_str::<Value>(frame) else {
            return;
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let payload = &frame["payload"];
        let holder = text(&frame["sender_handle"]);
        let lease_id = text(&payload["lease_id"]).to_ascii_lowercase();
        let lease = Duration::from_millis(payload["ttl_ms"].as_u64().unwrap_or(0));
        // Found by holder too: a frame of another sender with the same lease changes nothing.
        let key = (holder.clone(), lease_id.clone());
        if kind == FrameKind::AgentLockRequest {
            let Some(at) = UnixMicros::parse(&text(&frame["created_at"])) else {
                return;
            };
            let intent = payload["intent"]
                .as_str()
                .filter(|intent| !intent.is_empty())
                .map(str::to_owned);
            let claim = ResourceClaim {
                holder,
                resource: text(&payload["resource"]),
                lease_id,
                intent,
                expires_at: at.saturating_add(lease),
                basis: text(&frame["provenance_basis"]),
            };
            let index = *self.by_lease.entry(key).or_insert(self.claims.len());
            match self.claims.get_mut(index) {
                Some(known) => *known = Some(claim),
                None => self.claims.push(Some(claim)),
            }
        } else if kind == FrameKind::AgentLeaseExtend {
            let index = self.by_lease.get(&key);
            let claim = index.and_then(|index| self.claims.get_mut(*index)?.as_mut());
            if let Some(claim) = claim {
                claim.expires_at = claim.expires_at.saturating_add(lease);
            }
        } else if let Some(index) = self.by_lease.remove(&key)
            && let Some(claim) = self.claims.get_mut(index)
        {
            *claim = None;
        }
    }
}

/// Whether two resources are equal or one is a folder that contains the other.
fn resources_overlap(left: &str, right: &str) -> bool {
    let within = |folder: &str, inner: &str| {
        let folder = folder.trim_end_matches('/');
        inner
            .strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || (!folder.is_empty() && rest.starts_with('/')))
    };
    within(left, right) || within(right, left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn apply(claims: &mut ClaimIndex, kind: FrameKind, from: &str, payload: Value) {
        let frame = json!({"sender_handle": from, "created_at": "1970-01-01T00:00:00Z", "payload": payload});
        claims.apply_lock_frame(kind, &frame.to_string());
    }

    #[test]
    fn a_claim_lasts_until_its_holder_releases_it() {
        let mut claims = ClaimIndex::default();
        apply(
            &mut claims,
            FrameKind::AgentLockRequest,
            "~a",
            json!({"resource": "src", "lease_id": "AB", "ttl_ms": 1000}),
        );
        apply(
            &mut claims,
            FrameKind::AgentLeaseExtend,
            "~a",
            json!({"lease_id": "ab", "ttl_ms": 500}),
        );
        apply(
            &mut claims,
            FrameKind::AgentLockRelease,
            "~b",
            json!({"lease_id": "ab"}),
        );
        apply(
            &mut claims,
            FrameKind::AgentAdvisory,
            "~a",
            json!({"advisory_text": "x", "lease_id": "ab"}),
        );
        let held: Vec<&ResourceClaim> = claims.claims.iter().flatten().collect();
        assert_eq!(held.len(), 1);
        assert_eq!(held[0].expires_at, UnixMicros(1_500_000));
        apply(
            &mut claims,
            FrameKind::AgentLockRelease,
            "~a",
            json!({"lease_id": "ab"}),
        );
        assert!(claims.into_claims().is_empty());
    }

    /// a ring holds 10 000 frames. With a search for each, twenty such rings take half a minute here.
    #[test]
    fn replaying_a_ring_full_of_claims_takes_a_time_that_grows_with_its_length() {
        let started = std::time::Instant::now();
        for _ in 0..20 {
            let mut claims = ClaimIndex::default();
            for number in 0..10_000 {
                let payload =
                    json!({"resource": "src", "lease_id": format!("{number:036}"), "ttl_ms": 1000});
                apply(&mut claims, FrameKind::AgentLockRequest, "~a", payload);
            }
            assert_eq!(claims.into_claims().len(), 10_000);
        }
        assert!(started.elapsed() < Duration::from_secs(15));
    }

    #[test]
    fn a_folder_overlaps_its_contents() {
        for (one, other, both) in [
            ("src", "src/a.rs", true),
            ("src/a.rs", "src/", true),
            ("src", "srcs", false),
            ("a", "a", true),
            ("", "a", false),
        ] {
            assert_eq!(resources_overlap(one, other), both, "{one} {other}");
        }
    }
}
