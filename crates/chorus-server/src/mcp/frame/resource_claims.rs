//! Finds conflicting claims by replaying the lock frames in the handle's ring: the hub keeps no table of claims (FRM-23…27).

use super::sender::FrameSender;
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::delivery::FeedItem;
use chorus_hub::frame::{self, FrameStreamRequest};
use chorus_wire::cursor::ResumePoint;
use chorus_wire::frame::FrameKind;
use chorus_wire::{limits, sse, time::UnixMicros};
use futures_util::FutureExt;
use serde::Serialize;
use serde_json::Value;
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
    let request = FrameStreamRequest {
        handle: sender.handle.to_string(),
        instrument: Some(sender.instrument.to_string()),
        session: sender.session.as_ref().map(|session| session.to_string()),
        // An unknown id makes the stream replay the whole ring.
        resume: ResumePoint::Unknown,
        ..FrameStreamRequest::default()
    };
    let mut feed = frame::open_stream(&call.principal, call.state.hub.frames(), request).await?;
    let mut reader = sse::SseReader::new(limits::STREAM_QUEUE_BYTES);
    let mut claims = Vec::new();
    // The replay is ready at once; an event that has to be awaited is newer than the question.
    while let Some(FeedItem::Events(chunks)) = feed.next().now_or_never() {
        for event in chunks
            .iter()
            .flat_map(|chunk| reader.read_chunk(chunk).unwrap_or_default())
        {
            if let Some(kind) = FrameKind::parse(&event.name) {
                apply_lock_frame(&mut claims, kind, &event.data);
            }
        }
    }
    let now = call.state.hub.clock().now();
    claims.retain(|claim| claim.expires_at > now && resources_overlap(&claim.resource, resource));
    Ok(claims)
}

fn apply_lock_frame(claims: &mut Vec<ResourceClaim>, kind: FrameKind, frame: &str) {
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
    // Matched by holder too: a frame of another sender with the same lease changes nothing.
    let existing = claims
        .iter()
        .position(|claim| claim.holder == holder && claim.lease_id == lease_id);
    match (
        kind == FrameKind::AgentLockRequest,
        kind == FrameKind::AgentLeaseExtend,
        existing,
    ) {
        (true, _, existing) => {
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
            match existing {
                Some(index) => claims[index] = claim,
                None => claims.push(claim),
            }
        }
        (false, true, Some(index)) => {
            claims[index].expires_at = claims[index].expires_at.saturating_add(lease)
        }
        (false, false, Some(index)) => drop(claims.remove(index)),
        (false, _, None) => {}
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

    fn apply(claims: &mut Vec<ResourceClaim>, kind: FrameKind, from: &str, payload: Value) {
        let frame = json!({"sender_handle": from, "created_at": "1970-01-01T00:00:00Z", "payload": payload});
        apply_lock_frame(claims, kind, &frame.to_string());
    }

    #[test]
    fn a_claim_lasts_until_its_holder_releases_it() {
        let mut claims = Vec::new();
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
        assert_eq!(claims.len(), 1);
        assert_eq!(claims[0].expires_at, UnixMicros(1_500_000));
        apply(
            &mut claims,
            FrameKind::AgentLockRelease,
            "~a",
            json!({"lease_id": "ab"}),
        );
        assert!(claims.is_empty());
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
