//! Advisory claims on resources: acquire, extend, release. The hub does not enforce them (FRM-23…27).

use super::resource_claims::{self, ResourceClaim};
use super::sender::{FrameSender, SenderArgs, describe_reach};
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::random;
use chorus_wire::frame::{FrameKind, SubmissionReply};
use chorus_wire::{limits, time::UnixMicros};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use utoipa::ToSchema;

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

const ACQUIRE_DESCRIPTION: &str = "Announce that you claim a resource, such as a file or a folder, for a while, so that other sessions leave it \
    alone. Use it before a change that must not collide. The claim asks and does not enforce; the first one stands. Returns \
    lease_id, which agent_lock_release and agent_lease_extend need, and in `others` the claims that came first: if there are any, \
    release yours and work on something else, or ask their holder with agent_query.";

const RELEASE_DESCRIPTION: &str =
    "Let go of a claim made with agent_lock_acquire, as soon as you are done with the resource.";

const EXTEND_DESCRIPTION: &str = "Prolong a claim made with agent_lock_acquire before it runs out: ttl_ms is added to what is left.";

/// The duration of a claim without `ttl_ms` (lesson 15).
const DEFAULT_LEASE_MS: u64 = 300_000;

/// `agent_lock_acquire`
#[derive(Deserialize, JsonSchema)]
struct LockAcquireArgs {
    /// A path in the repository, a URL, a name. A folder means all in it.
    #[schemars(length(min = 1, max = limits::FRAME_PATH_OCTETS))]
    resource: String,
    /// For how many milliseconds; five minutes without it, an hour at most.
    #[schemars(range(min = 1, max = limits::LEASE_MAX_MS))]
    ttl_ms: Option<u64>,
    /// What you want it for.
    #[schemars(length(max = limits::FRAME_TEXT_OCTETS))]
    intent: Option<String>,
    /// Of a claim of yours to be said again; a new one without it.
    #[schemars(length(min = 36, max = 36))]
    lease_id: Option<String>,
    #[serde(flatten)]
    sender: SenderArgs,
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
    let lease_id = args
        .lease_id
        .unwrap_or_else(|| random::new_id().to_string());
    let resource = args.resource;
    let ttl_ms = args.ttl_ms.unwrap_or(DEFAULT_LEASE_MS);
    let mut payload = json!({"resource": resource, "lease_id": lease_id, "ttl_ms": ttl_ms});
    if let Some(intent) = args.intent {
        payload["intent"] = json!(intent);
    }
    let sender = FrameSender::from_call(&call, &args.sender)?;
    let expires_at = call
        .state
        .hub
        .clock()
        .now()
        .saturating_add(Duration::from_millis(ttl_ms));
    let submitted = sender
        .submit_frame(&call, FrameKind::AgentLockRequest, payload, None)
        .await?;
    // Read after the own claim and truncated at it: of two concurrent claims, the later one sees the earlier.
    let mut others = resource_claims::find_conflicting_claims(&call, &sender, &resource).await?;
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
            describe_reach(submitted.recipient_count)
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

/// `agent_lock_release`
#[derive(Deserialize, JsonSchema)]
struct LockReleaseArgs {
    /// The lease_id that agent_lock_acquire returned.
    #[schemars(length(min = 36, max = 36))]
    lease_id: String,
    /// What was claimed, for those who did not hear the claim.
    #[schemars(length(max = limits::FRAME_PATH_OCTETS))]
    resource: Option<String>,
    #[serde(flatten)]
    sender: SenderArgs,
}

async fn release_lock(
    call: ToolCall,
    args: LockReleaseArgs,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    let mut payload = json!({"lease_id": args.lease_id});
    if let Some(resource) = args.resource {
        payload["resource"] = json!(resource);
    }
    let submitted = FrameSender::from_call(&call, &args.sender)?
        .submit_frame(&call, FrameKind::AgentLockRelease, payload, None)
        .await?;
    Ok(ToolOutput::new(
        describe_reach(submitted.recipient_count),
        submitted,
    ))
}

/// `agent_lease_extend`
#[derive(Deserialize, JsonSchema)]
struct LeaseExtendArgs {
    /// The lease_id that agent_lock_acquire returned.
    #[schemars(length(min = 36, max = 36))]
    lease_id: String,
    /// How many milliseconds are added to what is left.
    #[schemars(range(min = 1, max = limits::LEASE_MAX_MS))]
    ttl_ms: u64,
    #[serde(flatten)]
    sender: SenderArgs,
}

async fn extend_lease(
    call: ToolCall,
    args: LeaseExtendArgs,
) -> Result<ToolOutput<SubmissionReply>, ToolError> {
    let payload = json!({"lease_id": args.lease_id, "ttl_ms": args.ttl_ms});
    let submitted = FrameSender::from_call(&call, &args.sender)?
        .submit_frame(&call, FrameKind::AgentLeaseExtend, payload, None)
        .await?;
    Ok(ToolOutput::new(
        describe_reach(submitted.recipient_count),
        submitted,
    ))
}
