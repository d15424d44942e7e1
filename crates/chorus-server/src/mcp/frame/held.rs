//! Who else claims a resource, told from the lock frames that a handle has heard lately: the hub keeps no table of claims (FRM-23…27).

use super::speaker::Speaker;
use crate::mcp::call::Call;
use crate::mcp::refusal::Refusal;
use chorus_hub::delivery::Next;
use chorus_hub::frame::{self, Opening};
use chorus_wire::frame::Kind;
use chorus_wire::{limits, sse, time::Micros};
use futures_util::FutureExt;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;
use utoipa::ToSchema;

/// A claim that stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Held {
    #[schema(example = "~alice")]
    pub holder: String,
    pub resource: String,
    pub lease_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Micros,
    /// The session that claimed it, where its frame says so.
    #[serde(skip)]
    basis: String,
}

impl Held {
    /// Whether this very session made it.
    pub fn is_of(&self, speaker: &Speaker) -> bool {
        self.holder == speaker.handle.as_str()
            && speaker.basis().is_some_and(|here| self.basis == here)
    }
}

/// The claims that stand in the way of `resource`, the first one first; what is older than the ring is forgotten.
pub async fn standing(
    call: &Call,
    speaker: &Speaker,
    resource: &str,
) -> Result<Vec<Held>, Refusal> {
    // An id that nobody gave out: first comes everything that is kept.
    let since = Some("everything".to_owned());
    let opening = Opening {
        handle: speaker.handle.to_string(),
        instrument: Some(speaker.instrument.to_string()),
        session: speaker.session.as_ref().map(|session| session.to_string()),
        since,
        ..Opening::default()
    };
    let mut feed = frame::open(&call.who, &call.doors.hub, opening).await?;
    let (mut reader, mut claims) = (sse::Reader::new(limits::STREAM_QUEUE_BYTES), Vec::new());
    // What is kept is there at once; whatever would have to be waited for is news.
    while let Some(Next::Events(chunks)) = feed.next().now_or_never() {
        for event in chunks
            .iter()
            .flat_map(|chunk| reader.read(chunk).unwrap_or_default())
        {
            if let Some(kind) = Kind::parse(&event.name) {
                hear(&mut claims, kind, &event.data);
            }
        }
    }
    let now = call.doors.hub.clock().now();
    claims.retain(|claim| claim.expires_at > now && meets(&claim.resource, resource));
    Ok(claims)
}

fn hear(claims: &mut Vec<Held>, kind: Kind, frame: &str) {
    if !matches!(
        kind,
        Kind::AgentLockRequest | Kind::AgentLockRelease | Kind::AgentLeaseExtend
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
    let span = Duration::from_millis(payload["ttl_ms"].as_u64().unwrap_or(0));
    // By who made it, too: another's frame with the same lease changes nothing.
    let known = claims
        .iter()
        .position(|claim| claim.holder == holder && claim.lease_id == lease_id);
    match (
        kind == Kind::AgentLockRequest,
        kind == Kind::AgentLeaseExtend,
        known,
    ) {
        (true, _, known) => {
            let Some(at) = Micros::parse(&text(&frame["created_at"])) else {
                return;
            };
            let intent = payload["intent"]
                .as_str()
                .filter(|intent| !intent.is_empty())
                .map(str::to_owned);
            let (resource, basis) = (text(&payload["resource"]), text(&frame["provenance_basis"]));
            let claim = Held {
                holder,
                resource,
                lease_id,
                intent,
                expires_at: at.plus(span),
                basis,
            };
            match known {
                Some(place) => claims[place] = claim,
                None => claims.push(claim),
            }
        }
        (false, true, Some(place)) => {
            claims[place].expires_at = claims[place].expires_at.plus(span)
        }
        (false, false, Some(place)) => drop(claims.remove(place)),
        (false, _, None) => {}
    }
}

/// A claim on a folder is one on everything in it.
fn meets(one: &str, other: &str) -> bool {
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

    fn said(claims: &mut Vec<Held>, kind: Kind, from: &str, payload: Value) {
        let frame = json!({"sender_handle": from, "created_at": "1970-01-01T00:00:00Z", "payload": payload});
        hear(claims, kind, &frame.to_string());
    }

    #[test]
    fn a_claim_stands_until_its_own_holder_lets_it_go() {
        let mut claims = Vec::new();
        said(
            &mut claims,
            Kind::AgentLockRequest,
            "~a",
            json!({"resource": "src", "lease_id": "AB", "ttl_ms": 1000}),
        );
        said(
            &mut claims,
            Kind::AgentLeaseExtend,
            "~a",
            json!({"lease_id": "ab", "ttl_ms": 500}),
        );
        said(
            &mut claims,
            Kind::AgentLockRelease,
            "~b",
            json!({"lease_id": "ab"}),
        );
        said(
            &mut claims,
            Kind::AgentAdvisory,
            "~a",
            json!({"advisory_text": "x", "lease_id": "ab"}),
        );
        assert_eq!(claims.len(), 1);
        assert_eq!(claims[0].expires_at, Micros(1_500_000));
        said(
            &mut claims,
            Kind::AgentLockRelease,
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
            assert_eq!(meets(one, other), both, "{one} {other}");
        }
    }
}
