//! `GET /.well-known/chorus.json`: what this hub is, where its routes are and what it allows (TRN-49…51, TRN-63, R-14).

use super::skill::SKILL_TEXTS;
use crate::http::{app_state::AppState, reply, reply::ApiResult};
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

/// The printed keys first and in their order, ours after (R-14).
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

/// The four printed ones, then the rest; a path in braces has a parameter.
#[derive(Serialize, ToSchema)]
struct EndpointPaths {
    register: &'static str,
    discover: &'static str,
    send: &'static str,
    health: &'static str,
    self_register: &'static str,
    directory: &'static str,
    agent: &'static str,
    unregister: &'static str,
    invite: &'static str,
    invites: &'static str,
    revoke_invite: &'static str,
    inbox: &'static str,
    session: &'static str,
    history: &'static str,
    respond: &'static str,
    message: &'static str,
    skill: &'static str,
    skill_language: &'static str,
    ready: &'static str,
    metrics: &'static str,
    activity: &'static str,
    events: &'static str,
    openapi: &'static str,
    docs: &'static str,
    console: &'static str,
    console_file: &'static str,
    frames: &'static str,
    frame_stream: &'static str,
    roster: &'static str,
    grants: &'static str,
    grant: &'static str,
    orgs: &'static str,
    members: &'static str,
    member: &'static str,
    accept_membership: &'static str,
    accords: &'static str,
    accord: &'static str,
    accept_accord: &'static str,
    channels: &'static str,
    channel: &'static str,
    channel_members: &'static str,
    channel_member: &'static str,
    channel_messages: &'static str,
    channel_stream: &'static str,
    channel_artifacts: &'static str,
    channel_artifact: &'static str,
    channel_callback: &'static str,
    standing_callback: &'static str,
    connection: &'static str,
    delivery: &'static str,
    skills: &'static str,
    skill_offer: &'static str,
    heartbeat: &'static str,
    reputation: &'static str,
    jobs: &'static str,
    job: &'static str,
    job_result: &'static str,
    job_cancel: &'static str,
    transfer: &'static str,
    account: &'static str,
    credit: &'static str,
    audit: &'static str,
    economy: &'static str,
    mcp: &'static str,
    tools: &'static str,
    channel_tools: &'static str,
    tools_resource: &'static str,
    tools_metadata: &'static str,
    channel_tools_metadata: &'static str,
}

const ENDPOINTS: EndpointPaths = EndpointPaths {
    register: "/agents",
    discover: "/agents",
    send: "/messages",
    health: "/health",
    self_register: "/register",
    directory: "/discover",
    agent: "/agents/{id}",
    unregister: "/agents/{id}",
    invite: "/invite/{id}",
    invites: "/invites",
    revoke_invite: "/invites/{id}",
    inbox: "/agent/inbox",
    session: "/agent/session",
    history: "/agent/messages",
    respond: "/agent/messages/{trace_id}/response",
    message: "/messages/{trace_id}",
    skill: "/skill",
    skill_language: "/skill/{lang}",
    ready: "/ready",
    metrics: "/metrics",
    activity: "/activity",
    events: "/events",
    openapi: "/openapi.json",
    docs: "/docs",
    console: "/console",
    console_file: "/console/{file}",
    frames: "/frames",
    frame_stream: "/handles/{handle}/stream",
    roster: "/handles/{handle}/roster",
    grants: "/handles/{handle}/grants",
    grant: "/handles/{handle}/grants/{grantee}",
    orgs: "/orgs",
    members: "/orgs/{org}/members",
    member: "/orgs/{org}/members/{handle}",
    accept_membership: "/orgs/{org}/members/{handle}/accept",
    accords: "/orgs/{org}/accords",
    accord: "/orgs/{org}/accords/{id}",
    accept_accord: "/orgs/{org}/accords/{id}/accept",
    channels: "/channels",
    channel: "/channels/{id}",
    channel_members: "/channels/{id}/members",
    channel_member: "/channels/{id}/members/{name}",
    channel_messages: "/channels/{id}/messages",
    channel_stream: "/channels/{id}/stream",
    channel_artifacts: "/channels/{id}/artifacts",
    channel_artifact: "/channels/{id}/artifacts/{slug}",
    channel_callback: "/channels/{id}/inbox/{token}",
    standing_callback: "/channels/{id}/members/{name}/callback",
    connection: "/agent/connection",
    delivery: "/inbox/{secret}",
    skills: "/skills",
    skill_offer: "/skills/{name}",
    heartbeat: "/heartbeat",
    reputation: "/reputation/{agent}",
    jobs: "/jobs",
    job: "/jobs/{id}",
    job_result: "/jobs/{id}/result",
    job_cancel: "/jobs/{id}/cancel",
    transfer: "/transfer",
    account: "/accounts/{owner}",
    credit: "/accounts/{owner}/credit",
    audit: "/audit",
    economy: "/economy",
    mcp: "/.well-known/mcp.json",
    tools: "/mcp",
    channel_tools: "/mcp/{channel}",
    tools_resource: "/.well-known/oauth-protected-resource",
    tools_metadata: "/.well-known/oauth-protected-resource/mcp",
    channel_tools_metadata: "/.well-known/oauth-protected-resource/mcp/{channel}",
};

#[derive(Serialize, ToSchema)]
struct HubCapabilities {
    /// How a message can reach a receiver.
    delivery: [&'static str; 2],
    /// What an inbox stream carries.
    inbox_events: [&'static str; 6],
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

#[derive(Serialize, ToSchema)]
struct PublishedLimits {
    /// Null: as many as come.
    max_agents: Option<u64>,
    max_message_bytes: usize,
    /// 0: no limit.
    rate_limit_per_minute: u32,
    max_text_characters: usize,
    max_header_bytes: usize,
    max_page: usize,
    max_streams_per_agent: usize,
    max_streams_per_handle: usize,
    idempotency_seconds: u64,
    session_token_seconds: u64,
    max_channel_members: usize,
    /// What is said at once in a channel, as JSON.
    max_said_characters: usize,
    /// How long a member's status is shown.
    status_seconds: u64,
    webhook_timeout_ms: u64,
}

#[derive(Serialize, ToSchema)]
struct RetentionInfo {
    /// Null: for good.
    messages_seconds: Option<u64>,
    frames: FrameRetention,
}

/// Frames are kept in memory only, whichever of the three is reached first; then they are gone (FRM-112).
#[derive(Serialize, ToSchema)]
struct FrameRetention {
    seconds: u64,
    frames: usize,
    bytes: usize,
}

/// What this hub is, where its routes are and what it allows
#[utoipa::path(get, path = "/.well-known/chorus.json", tag = "envelope", responses((status = 200, body = DiscoveryDocument)))]
async fn get_discovery(State(state): State<AppState>) -> ApiResult {
    let options = state.hub.options();
    let document = DiscoveryDocument {
        chorus_version: CHORUS_VERSION,
        server_name: state.server_name.clone(),
        endpoints: ENDPOINTS,
        server_status: "ok",
        server_version: env!("CARGO_PKG_VERSION"),
        card_version: CARD_VERSION,
        host_name: options.host_name.clone(),
        public_url: state.public_url.clone(),
        capabilities: HubCapabilities {
            delivery: ["sse", "webhook"],
            inbox_events: [
                "connected",
                "message",
                "receipt",
                "channel",
                "job",
                "job_result",
            ],
            resume: ["Last-Event-ID", "since"],
            streaming_send: true,
            idempotency_key: true,
            session_tokens: true,
            receipts: true,
            a2a_envelope: true,
            skill_languages: SKILL_TEXTS.iter().map(|(lang, _)| *lang).collect(),
            frames: state.frame_capabilities.clone(),
        },
        limits: PublishedLimits {
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
        },
        retention: RetentionInfo {
            messages_seconds: options.retain.map(|age| age.as_secs()),
            frames: FrameRetention {
                seconds: limits::RING_RETENTION.as_secs(),
                frames: limits::RING_FRAMES,
                bytes: limits::RING_BYTES,
            },
        },
    };
    let mut response = reply::bare_json(StatusCode::OK, &document)?;
    response.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=60"),
    );
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TRN-50, R-14
    #[test]
    fn the_printed_endpoints_come_first_with_the_printed_paths() {
        let text = serde_json::to_string(&ENDPOINTS).unwrap();
        let printed =
            r#"{"register":"/agents","discover":"/agents","send":"/messages","health":"/health","#;
        assert!(text.starts_with(printed), "{text}");
    }

    /// TRN-63: a route that is mounted is also announced, and the other way round.
    #[test]
    fn every_route_is_announced_and_every_announced_path_is_mounted() {
        let (_, api) = crate::router::all_routes().split_for_parts();
        let mounted: std::collections::BTreeSet<&str> =
            api.paths.paths.keys().map(String::as_str).collect();
        let announced = serde_json::to_value(&ENDPOINTS).unwrap();
        let mut announced: std::collections::BTreeSet<&str> = announced
            .as_object()
            .unwrap()
            .values()
            .map(|path| path.as_str().unwrap())
            .collect();
        announced.extend(["/", "/.well-known/chorus.json"]);
        assert_eq!(mounted, announced);
    }
}
