//! The claims that hold now, as the hub keeps them (FRM-23…27, R-83). A claim binds no session; it is true as long as it says.

use super::open_items::ParsedOpenItem;
use chorus_wire::frame::FramePayload;
use chorus_wire::{identity::Handle, time::UnixMicros};
use serde::Serialize;
use std::time::Duration;
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
    pub order: usize,
}

impl LockClaim {
    pub fn time_left(&self, now: UnixMicros) -> Duration {
        Duration::from_micros(
            u64::try_from(self.expires_at.0.saturating_sub(now.0)).unwrap_or_default(),
        )
    }
}

/// The claims among the open items.
#[derive(Debug, Default)]
pub struct LockClaims(Vec<LockClaim>);

impl LockClaims {
    /// `items` are in the order in which they were opened.
    pub fn from_items(items: &[ParsedOpenItem]) -> Self {
        let to_claim = |(order, open_item): (usize, &ParsedOpenItem)| {
            let FramePayload::AgentLockRequest(request) = &open_item.frame.payload else {
                return None;
            };
            Some(LockClaim {
                resource: request.resource.clone(),
                holder: open_item.frame.sender_handle.clone(),
                session: super::frame_session(&open_item.frame)
                    .map(|(instrument, session)| format!("{instrument}@{session}")),
                drafted_with: open_item.frame.drafted_with.clone(),
                lease_id: request.lease_id,
                intent: request.intent.clone().filter(|intent| !intent.is_empty()),
                expires_at: open_item.expires_at,
                order,
            })
        };
        let mut claims: Vec<LockClaim> = items.iter().enumerate().filter_map(to_claim).collect();
        claims.sort_by(|a, b| (&a.resource, a.order).cmp(&(&b.resource, b.order)));
        Self(claims)
    }

    /// Claims that have not expired, by resource, the first claim first.
    pub fn active_claims(&self, now: UnixMicros) -> Vec<&LockClaim> {
        let is_active = |claim: &&LockClaim| claim.expires_at > now;
        self.0.iter().filter(is_active).collect()
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
    use crate::frame::{FrameSender, parse_open_items};
    use chorus_wire::frame::payload::AgentLockRequest;
    use chorus_wire::frame::{OpenItem, ScopeIdent};
    use serde_json::value::RawValue;

    fn at(seconds: i64) -> UnixMicros {
        UnixMicros(seconds * 1_000_000)
    }

    fn open_item(resource: &str, left_ms: u64) -> OpenItem {
        let ident = |text| ScopeIdent::parse(text).unwrap();
        let handle = Handle::parse("~alice").unwrap();
        let sender = FrameSender::new(handle, ident("cli"), ident("s1"));
        let request = AgentLockRequest {
            resource: resource.into(),
            lease_id: crate::frame::random_uuid(),
            ttl_ms: 3_600_000,
            intent: Some(String::new()),
        };
        let draft = sender.draft_frame(&sender.handle_scope(), request.into(), at(0));
        OpenItem {
            frame_id: draft.frame_id,
            item: "lock".into(),
            handle: "~alice".into(),
            scope: "~alice".into(),
            opened_at: at(0),
            expires_at: at(3_600),
            left_ms,
            frame: RawValue::from_string(draft.to_json()).unwrap(),
        }
    }

    /// the hub says how much time is left, whatever this machine's clock shows.
    #[test]
    fn a_claim_lasts_as_long_as_the_hub_says_and_the_first_on_a_resource_holds() {
        let newest_first = vec![open_item("src/a.rs", 9_000), open_item("src/a.rs", 60_000)];
        let first = newest_first[1].frame_id;
        let now = at(1_000_000);
        let items = parse_open_items(newest_first, now);
        let claims = LockClaims::from_items(&items);
        let held = claims.claims_on("src", now);
        assert_eq!((held.len(), held[0].order), (2, 0));
        assert_eq!(items[0].frame.frame_id, first);
        assert_eq!(held[0].time_left(now), Duration::from_secs(60));
        assert_eq!(held[0].session.as_deref(), Some("cli@s1"));
        assert_eq!(claims.active_claims(at(1_000_010)).len(), 1);
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
