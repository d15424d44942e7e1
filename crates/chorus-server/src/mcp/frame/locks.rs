//! Advisory claims on resources: acquire, extend, release. The hub keeps them and does not enforce them (FRM-23…27, R-83).

use super::resource_claims::{self, ResourceClaim};
use super::sender::{FrameSender, describe_reach, frame_tool_args};
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::random;
use chorus_wire::frame::payload::{AgentLeaseExtend, AgentLockRelease, AgentLockRequest};
use chorus_wire::frame::{FrameKind, SubmissionReply};
use chorus_wire::time::UnixMicros;
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;
use uuid::Uuid;

pub fn lock_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![
        ToolDefinition::new(
            "agent_lock_acquire",
            "Claim a resource",
            ToolKind::Sends,
            ACQUIRE_DESCRIPTION,
            acquire_lock,
        ),
        ToolDefinition::new(
            "agent_lock_release",
            "Let a claim go",
            ToolKind::Idempotent,
            RELEASE_DESCRIPTION,
            release_lock,
        ),
        ToolDefinition::new(
            "agent_lease_extend",
            "Prolong a claim",
            ToolKind::Sends,
            EXTEND_DESCRIPTION,
            extend_lease,
        ),
    ]
}

const ACQUIRE_DESCRIPTION: &str = "Claim a file, a folder or another resource, before a change that must not collide. \
    It asks and does not enforce; the first claim stands. If `others` has claims that came first, release yours by \
    its lease_id, or ask their holder with agent_query.";

const RELEASE_DESCRIPTION: &str =
    "Let go of a claim made with agent_lock_acquire, as soon as you are done.";

const EXTEND_DESCRIPTION: &str =
    "Prolong a claim before it runs out: ttl_ms is added to what is left.";

/// The duration of a claim without `ttl_ms` (lesson 15).
const DEFAULT_LEASE_MS: u64 = 300_000;

frame_tool_args! {
    /// `agent_lock_acquire`
    LockAcquireArgs {
        /// A path in the repository, a URL, a name. A folder means all in it.
        required resource: String = AgentLockRequest::SHAPE.check_of("resource");
        /// In ms; five minutes without it, an hour at most.
        nullable ttl_ms: u64 = AgentLockRequest::SHAPE.check_of("ttl_ms");
        /// What for.
        nullable intent: String = AgentLockRequest::SHAPE.check_of("intent");
        /// To repeat a claim of yours.
        nullable lease_id: Uuid = AgentLockRequest::SHAPE.check_of("lease_id");
    }
}

/// A claim that was announced.
#[derive(Serialize, ToSchema)]
struct ClaimOutcome {
    #[serde(flatten)]
    submitted: SubmissionReply,
    lease_id: String,
    resource: String,
    #[schema(value_type = String, format = DateTime)]
    expires_at: UnixMicros,
    /// Claims on it that were there before.
    others: Vec<ResourceClaim>,
}

async fn acquire_lock(
    call: ToolCall,
    args: LockAcquireArgs,
) -> Result<ToolOutput<ClaimOutcome>, ToolError> {
    let sender = FrameSender::from_call(&call, &args).await?;
    let ttl_ms = args.ttl_ms.unwrap_or(DEFAULT_LEASE_MS);
    let request = AgentLockRequest {
        resource: args.resource,
        lease_id: args.lease_id.unwrap_or_else(random::new_id),
        ttl_ms,
        intent: args.intent,
    };
    let resource = request.resource.clone();
    let lease_id = request.lease_id.to_string();
    let expires_at = call
        .state
        .hub
        .clock()
        .now()
        .saturating_add(Duration::from_millis(ttl_ms));
    let submitted = sender
        .submit_frame(&call, FrameKind::AgentLockRequest, request, None)
        .await?;
    let expires_at = submitted.kept_until.unwrap_or(expires_at);
    // Read after the own claim and truncated at it: of two concurrent claims, the later one sees the earlier.
    let mut others = resource_claims::find_conflicting_claims(&call, &resource).await?;
    let own_index = others
        .iter()
        .position(|claim| claim.lease_id.eq_ignore_ascii_case(&lease_id));
    others.truncate(own_index.unwrap_or(others.len()));
    others.retain(|claim| !claim.is_made_by(&sender));
    let text = match others.first() {
        Some(first) => {
            format!(
                "{} has claimed {} before you, until {}",
                first.holder, first.resource, first.expires_at
            )
        }
        None => format!(
            "{resource} is claimed until {expires_at}; {}",
            describe_reach(&submitted)
        ),
    };
    Ok(ToolOutput::new(
        text,
        ClaimOutcome {
            submitted,
            lease_id,
            resource,
            expires_at,
            others,
        },
    ))
}

frame_tool_args! {
    /// `agent_lock_release`
    LockReleaseArgs {
        /// From agent_lock_acquire.
        required lease_id: Uuid = AgentLockRelease::SHAPE.check_of("lease_id");
        /// What was claimed, for those who did not hear it.
        nullable resource: String = AgentLockRelease::SHAPE.check_of("resource");
    }
}

async fn release_lock(
    call: ToolCall,
    args: LockReleaseArgs,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    let sender = FrameSender::from_call(&call, &args).await?;
    let release = AgentLockRelease {
        lease_id: args.lease_id,
        resource: args.resource,
    };
    let submitted = sender
        .submit_frame(&call, FrameKind::AgentLockRelease, release, None)
        .await?;
    Ok(ToolOutput::new("released", submitted))
}

frame_tool_args! {
    /// `agent_lease_extend`
    LeaseExtendArgs {
        /// From agent_lock_acquire.
        required lease_id: Uuid = AgentLeaseExtend::SHAPE.check_of("lease_id");
        /// In ms.
        required ttl_ms: u64 = AgentLeaseExtend::SHAPE.check_of("ttl_ms");
    }
}

async fn extend_lease(
    call: ToolCall,
    args: LeaseExtendArgs,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    let sender = FrameSender::from_call(&call, &args).await?;
    let extension = AgentLeaseExtend {
        lease_id: args.lease_id,
        ttl_ms: args.ttl_ms,
    };
    let submitted = sender
        .submit_frame(&call, FrameKind::AgentLeaseExtend, extension, None)
        .await?;
    let text = match submitted.kept_until {
        Some(until) => format!("claimed until {until}"),
        None => "that claim is over; claim it again with agent_lock_acquire".to_owned(),
    };
    Ok(ToolOutput::new(text, submitted))
}
