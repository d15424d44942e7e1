//! Claims on resources: made, prolonged, let go. They bind nobody; sessions that hear them keep out of the way (FRM-23…27).

use super::held::{self, Held};
use super::speaker::{Speaker, Voice, reached};
use crate::mcp::call::Call;
use crate::mcp::refusal::Refusal;
use crate::mcp::tool::{Nature, Said, Verb};
use chorus_hub::clock;
use chorus_wire::frame::{Kind, Submitted};
use chorus_wire::{limits, time::Micros};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use utoipa::ToSchema;

pub fn verbs() -> Vec<Verb<Call>> {
    vec![
        Verb::new(
            "agent_lock_acquire",
            "Claim a resource",
            Nature::Speaks,
            ACQUIRE,
            acquire,
        ),
        Verb::new(
            "agent_lock_release",
            "Let a claim go",
            Nature::Settles,
            RELEASE,
            release,
        ),
        Verb::new(
            "agent_lease_extend",
            "Prolong a claim",
            Nature::Speaks,
            EXTEND,
            extend,
        ),
    ]
}

const ACQUIRE: &str = "Announce that you claim a resource, such as a file or a folder, for a while, so that other sessions leave it \
    alone. Use it before a change that must not collide. The claim is advisory: it asks and does not enforce, and the first claim \
    stands. Returns lease_id, which agent_lock_release and agent_lease_extend need, expires_at, and in `others` the claims of others \
    that came first: if there are any, let go of yours and work on something else, or ask their holder with agent_query.";

const RELEASE: &str = "Let go of a claim made with agent_lock_acquire, as soon as you are done with the resource. Returns frame_id and \
    recipient_count.";

const EXTEND: &str = "Prolong a claim made with agent_lock_acquire before it runs out: ttl_ms is added to what is left. Returns frame_id \
    and recipient_count.";

/// What a claim lasts that does not say (lesson 15).
const FIVE_MINUTES: u64 = 300_000;

/// `agent_lock_acquire`
#[derive(Deserialize, JsonSchema)]
struct AcquireArgs {
    /// What you claim: a path from the root of the repository, a URL, a name. A folder means everything in it.
    #[schemars(length(min = 1, max = limits::FRAME_PATH_OCTETS))]
    resource: String,
    /// For how many milliseconds; five minutes without it, an hour at most.
    #[schemars(range(min = 1, max = limits::LEASE_MS))]
    ttl_ms: Option<u64>,
    /// What you want it for.
    #[schemars(length(max = limits::FRAME_TEXT_OCTETS))]
    intent: Option<String>,
    /// The lease of a claim of yours that is to be said again; a new one without it.
    #[schemars(length(min = 36, max = 36))]
    lease_id: Option<String>,
    #[serde(flatten)]
    voice: Voice,
}

/// A claim that was announced.
#[derive(Serialize, ToSchema)]
struct Claimed {
    #[serde(flatten)]
    submitted: Submitted,
    lease_id: String,
    resource: String,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Micros,
    /// Claims on it that were there before.
    others: Vec<Held>,
}

async fn acquire(call: Call, args: AcquireArgs) -> Result<Said<Claimed>, Refusal> {
    let (lease_id, resource) = (
        args.lease_id.unwrap_or_else(|| clock::new_id().to_string()),
        args.resource,
    );
    let ttl_ms = args.ttl_ms.unwrap_or(FIVE_MINUTES);
    let mut payload = json!({"resource": resource, "lease_id": lease_id, "ttl_ms": ttl_ms});
    if let Some(intent) = args.intent {
        payload["intent"] = json!(intent);
    }
    let speaker = Speaker::of(&call, &args.voice)?;
    let expires_at = call
        .doors
        .hub
        .clock()
        .now()
        .plus(Duration::from_millis(ttl_ms));
    let submitted = speaker
        .submit(&call, Kind::AgentLockRequest, payload, None)
        .await?;
    // Looked at afterwards and up to one's own: of two who claim at once, the one who came second sees the first.
    let mut others = held::standing(&call, &speaker, &resource).await?;
    let mine = others
        .iter()
        .position(|claim| claim.lease_id.eq_ignore_ascii_case(&lease_id));
    others.truncate(mine.unwrap_or(others.len()));
    others.retain(|claim| !claim.is_of(&speaker));
    let text = match others.first() {
        Some(first) => {
            format!(
                "{} has claimed {} before you, until {}",
                first.holder, first.resource, first.expires_at
            )
        }
        None => format!(
            "{resource} is claimed until {expires_at}; {}",
            reached(submitted.recipient_count)
        ),
    };
    Ok(Said::new(
        text,
        Claimed {
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
struct ReleaseArgs {
    /// The lease_id that agent_lock_acquire returned.
    #[schemars(length(min = 36, max = 36))]
    lease_id: String,
    /// What was claimed, for those who did not hear the claim.
    #[schemars(length(max = limits::FRAME_PATH_OCTETS))]
    resource: Option<String>,
    #[serde(flatten)]
    voice: Voice,
}

async fn release(call: Call, args: ReleaseArgs) -> Result<Said<Submitted>, Refusal> {
    let mut payload = json!({"lease_id": args.lease_id});
    if let Some(resource) = args.resource {
        payload["resource"] = json!(resource);
    }
    let submitted = Speaker::of(&call, &args.voice)?
        .submit(&call, Kind::AgentLockRelease, payload, None)
        .await?;
    Ok(Said::new(reached(submitted.recipient_count), submitted))
}

/// `agent_lease_extend`
#[derive(Deserialize, JsonSchema)]
struct ExtendArgs {
    /// The lease_id that agent_lock_acquire returned.
    #[schemars(length(min = 36, max = 36))]
    lease_id: String,
    /// How many milliseconds are added to what is left.
    #[schemars(range(min = 1, max = limits::LEASE_MS))]
    ttl_ms: u64,
    #[serde(flatten)]
    voice: Voice,
}

async fn extend(call: Call, args: ExtendArgs) -> Result<Said<Submitted>, Refusal> {
    let payload = json!({"lease_id": args.lease_id, "ttl_ms": args.ttl_ms});
    let submitted = Speaker::of(&call, &args.voice)?
        .submit(&call, Kind::AgentLeaseExtend, payload, None)
        .await?;
    Ok(Said::new(reached(submitted.recipient_count), submitted))
}
