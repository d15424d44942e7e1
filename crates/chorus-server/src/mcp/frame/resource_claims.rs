//! Who else claims a resource, told from the lock frames that a handle has heard lately: the hub keeps no table of claims (FRM-23…27).

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
    /// Whether this very session made it.
    pub fn is_made_by(&self, sender: &FrameSender) -> bool {
        self.holder == sender.handle.as_str()
            && sender
                .provenance_basis()
                .is_some_and(|basis| self.basis == basis)
    }
}

/// The claims that stand in the way of `resource`, the first one first; what is older than the ring is forgotten.
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
    let (mut reader, mut claims) = (sse::SseReader::new(limits::STREAM_QUEUE_BYTES), Vec::new());
    // What is kept is there at once; whatever would have to be waited for is news.
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
    let (text, payload) = (
        |value: &Value| value.as_str().unwrap_or_default().to_owned(),
        &frame["payload"],
    );
    let (holder, lease_id) = (
        text(&frame["sender_handle"]),
        text(&payload["lease_id"]).to_ascii_lowercase(),
    );
    let lease = Duration::from_millis(payload["ttl_ms"].as_u64().unwrap_or(0));
    // By who made it, too: another's frame with the same lease changes nothing.
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
            let (resource, basis) = (text(&payload["resource"]), text(&frame["provenance_basis"]));
            let claim = ResourceClaim {
                holder,
                resource,
                lease_id,
                intent,
                expires_at: at.saturating_add(lease),
                basis,
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

/// A claim on a folder is one on everything in it.
fn resources_overlap(one: &str, other: &str) -> bool {
    let within = |folder: &str, inner: &str| {
        let folder = folder.trim_end_matches('/');
        inner
            .strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || (!folder.is_empty() && rest.starts_with('/')))
    };
    within(one, other) || within(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(claims: &mut Vec<ResourceClaim>, kind: FrameKind, from: &str, payload: Value) {
        let frame = json!({"sender_handle": from, "created_at": "1970-01-01T00:00:00Z", "payload": payload});
        apply_lock_frame(claims, kind, &frame.to_string());
    }

    #[test]
    fn a_claim_stands_until_its_own_holder_lets_it_go() {
        let mut claims = Vec::new();
        said(
            &mut claims,
            FrameKind::AgentLockRequest,
            "~a",
            json!({"resource": "src", "lease_id": "AB", "ttl_ms": 1000}),
        );
        said(
            &mut claims,
            FrameKind::AgentLeaseExtend,
            "~a",
            json!({"lease_id": "ab", "ttl_ms": 500}),
        );
        said(
            &mut claims,
            FrameKind::AgentLockRelease,
            "~b",
            json!({"lease_id": "ab"}),
        );
        said(
            &mut claims,
            FrameKind::AgentAdvisory,
            "~a",
            json!({"advisory_text": "x", "lease_id": "ab"}),
        );
        assert_eq!(claims.len(), 1);
        assert_eq!(claims[0].expires_at, UnixMicros(1_500_000));
        said(
            &mut claims,
            FrameKind::AgentLockRelease,
            "~a",
            json!({"lease_id": "ab"}),
        );
        assert!(claims.is_empty());
    }

    #[test]
    fn a_folder_and_what_is_in_it_meet() {
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
