//! Claims on resources, as the hub keeps them (FRM-23…27, R-83).

use super::open_items::{ParsedOpenItem, list_open_items};
use super::sender::FrameSender;
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_wire::frame::FramePayload;
use chorus_wire::time::UnixMicros;
use serde::Serialize;
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

/// The claims that overlap `resource`, oldest first.
pub async fn find_conflicting_claims(
    call: &ToolCall,
    resource: &str,
) -> Result<Vec<ResourceClaim>, ToolError> {
    let items = list_open_items(call).await?;
    let mut claims: Vec<ResourceClaim> = items.iter().rev().filter_map(read_claim).collect();
    claims.retain(|claim| resources_overlap(&claim.resource, resource));
    Ok(claims)
}

fn read_claim(open_item: &ParsedOpenItem) -> Option<ResourceClaim> {
    let FramePayload::AgentLockRequest(request) = &open_item.frame.payload else {
        return None;
    };
    Some(ResourceClaim {
        holder: open_item.frame.sender_handle.to_string(),
        resource: request.resource.clone(),
        lease_id: request.lease_id.to_string(),
        intent: request.intent.clone().filter(|intent| !intent.is_empty()),
        expires_at: open_item.item.expires_at,
        basis: open_item.frame.provenance.basis.clone(),
    })
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
