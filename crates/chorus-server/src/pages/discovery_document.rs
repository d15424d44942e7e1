//! `GET /.well-known/chorus.json`: the hub's version, routes, capabilities, limits and retention (TRN-49…51, R-14).

use super::endpoint_paths::{ENDPOINTS, EndpointPaths};
use super::skill::SKILL_TEXTS;
use crate::http::app_state::AppState;
use crate::http::reply::{self, ApiResult};
use axum::extract::State;
use chorus_wire::{CARD_VERSION, CHORUS_VERSION, limits};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(get_discovery))
}

/// What the hub is, where its routes are and what it allows.
// The printed keys come first and in their order, ours after.
#[derive(Serialize, ToSchema)]
struct DiscoveryDocument {
    chorus_version: &'static str,
    server_name: String,
    endpoints: EndpointPaths,
    server_status: &'static str,
    server_version: &'static str,
    card_version: &'static str,
    host_name: String,
    public_url: String,
    capabilities: HubCapabilities,
    limits: PublishedLimits,
    retention: RetentionInfo,
}

/// What this hub supports beyond the required parts of the protocols.
#[derive(Serialize, ToSchema)]
struct HubCapabilities {
    /// How a message can reach a receiver.
    delivery: [&'static str; 2],
    /// What an inbox stream carries.
    inbox_events: [&'static str; 10],
    /// How a stream goes on where it stopped.
    resume: [&'static str; 2],
    streaming_send: bool,
    idempotency_key: bool,
    session_tokens: bool,
    receipts: bool,
    a2a_envelope: bool,
    skill_languages: Vec<&'static str>,
    /// Kinds, payload shapes, scopes, filter axes and bounds of frames, as JSON Schema where it applies.
    #[schema(value_type = Object)]
    frames: Box<RawValue>,
}

/// The limits that a client can meet.
#[derive(Serialize, ToSchema)]
struct PublishedLimits {
    /// Null if there is no limit.
    #[schema(required = true)]
    max_agents: Option<u64>,
    max_message_bytes: usize,
    /// 0 if there is no limit.
    rate_limit_per_minute: u32,
    max_text_characters: usize,
    max_header_bytes: usize,
    max_page: usize,
    max_streams_per_agent: usize,
    max_streams_per_handle: usize,
    idempotency_seconds: u64,
    session_token_seconds: u64,
    max_channel_members: usize,
    /// The characters of one channel message as JSON.
    max_said_characters: usize,
    /// How long a member's status is shown.
    status_seconds: u64,
    webhook_timeout_ms: u64,
}

/// How long the hub keeps messages and frames.
#[derive(Serialize, ToSchema)]
struct RetentionInfo {
    /// Null if messages are never deleted.
    #[schema(required = true)]
    messages_seconds: Option<u64>,
    frames: FrameRetention,
}

/// How long frames are kept in memory: until the first of the three limits is reached (FRM-112).
#[derive(Serialize, ToSchema)]
struct FrameRetention {
    seconds: u64,
    frames: usize,
    bytes: usize,
    /// Who can read what is kept.
    access: &'static str,
    /// When it is deleted before it is old.
    deletion: &'static str,
}

/// Get the discovery document
///
/// What this hub is, where its routes are, and its capabilities and limits.
#[utoipa::path(get, path = "/.well-known/chorus.json", tag = "envelope",
    responses((status = 200, body = DiscoveryDocument, description = "The document.")))]
async fn get_discovery(State(state): State<AppState>) -> ApiResult {
    let document = DiscoveryDocument {
        chorus_version: CHORUS_VERSION,
        server_name: state.server_name.clone(),
        endpoints: ENDPOINTS,
        server_status: "ok",
        server_version: env!("CARGO_PKG_VERSION"),
        card_version: CARD_VERSION,
        host_name: state.hub.options().host_name.clone(),
        public_url: state.public_url.clone(),
        capabilities: describe_capabilities(&state),
        limits: describe_limits(&state),
        retention: describe_retention(&state),
    };
    let mut response = reply::bare_json(StatusCode::OK, &document)?;
    response.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=60"),
    );
    Ok(response)
}

fn describe_capabilities(state: &AppState) -> HubCapabilities {
    HubCapabilities {
        delivery: ["sse", "webhook"],
        inbox_events: [
            "connected",
            "message",
            "receipt",
            "shown",
            "channel",
            "job",
            "job_update",
            "job_result",
            "channel_invite",
            "gap",
        ],
        resume: ["Last-Event-ID", "since"],
        streaming_send: true,
        idempotency_key: true,
        session_tokens: true,
        receipts: true,
        a2a_envelope: true,
        skill_languages: SKILL_TEXTS.iter().map(|(lang, _)| *lang).collect(),
        frames: state.frame_capabilities.clone(),
    }
}

fn describe_limits(state: &AppState) -> PublishedLimits {
    let options = state.hub.options();
    PublishedLimits {
        max_agents: options.max_agents,
        max_message_bytes: limits::BODY_BYTES,
        rate_limit_per_minute: state.rate_limit,
        max_text_characters: limits::ORIGINAL_TEXT_CHARS,
        max_header_bytes: limits::HEADER_BYTES,
        max_page: limits::HISTORY_PAGE,
        max_streams_per_agent: limits::STREAMS_PER_SUBJECT,
        max_streams_per_handle: limits::STREAMS_PER_HANDLE,
        idempotency_seconds: limits::IDEMPOTENCY_RETENTION.as_secs(),
        session_token_seconds: limits::SESSION_TOKEN_TTL.as_secs(),
        max_channel_members: limits::MEMBERS_PER_CHANNEL,
        max_said_characters: limits::CHANNEL_MESSAGE_CHARS,
        status_seconds: limits::STATUS_TTL.as_secs(),
        webhook_timeout_ms: options.webhook_timeout.as_millis() as u64,
    }
}

/// FRM-112: with several hubs the frame stream of NATS keeps frames too, and is not purged when a hub restarts or an agent
/// leaves. The text is the same on every hub.
const FRAME_DELETION: &str =
    "after that time; on a hub alone also when it restarts or the agent unregisters";

fn describe_retention(state: &AppState) -> RetentionInfo {
    RetentionInfo {
        messages_seconds: state.hub.options().retain.map(|age| age.as_secs()),
        frames: FrameRetention {
            seconds: limits::RING_RETENTION.as_secs(),
            frames: limits::RING_FRAMES,
            bytes: limits::RING_BYTES,
            access: "the sessions of the handle, with its key",
            deletion: FRAME_DELETION,
        },
    }
}
