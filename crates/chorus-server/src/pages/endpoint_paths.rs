//! The paths of all routes, as the discovery document lists them (TRN-50, TRN-63, R-14).

use serde::Serialize;
use utoipa::ToSchema;

/// The paths of all routes. What is in braces is a parameter.
// The four printed ones come first (R-14).
#[derive(Serialize, ToSchema)]
pub struct EndpointPaths {
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
    keys: &'static str,
    revoke_key: &'static str,
    rotate_key: &'static str,
    blocks: &'static str,
    block: &'static str,
    contacts: &'static str,
    contact: &'static str,
    settings: &'static str,
    endpoint_secret: &'static str,
    usage: &'static str,
    history: &'static str,
    respond: &'static str,
    shown: &'static str,
    message: &'static str,
    skill: &'static str,
    skill_language: &'static str,
    ready: &'static str,
    metrics: &'static str,
    activity: &'static str,
    events: &'static str,
    openapi: &'static str,
    schemas: &'static str,
    schema: &'static str,
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
    accept_channel: &'static str,
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
    job_callback: &'static str,
    job_answer: &'static str,
    job_claim: &'static str,
    job_approve: &'static str,
    job_reject: &'static str,
    board: &'static str,
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

pub const ENDPOINTS: EndpointPaths = EndpointPaths {
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
    keys: "/agent/keys",
    revoke_key: "/agent/keys/{id}",
    rotate_key: "/agent/keys/rotate",
    blocks: "/agent/blocks",
    block: "/agent/blocks/{name}",
    contacts: "/agent/contacts",
    contact: "/agent/contacts/{name}",
    settings: "/agent/settings",
    endpoint_secret: "/agent/endpoint-secret",
    usage: "/agent/usage",
    history: "/agent/messages",
    respond: "/agent/messages/{trace_id}/response",
    shown: "/agent/messages/{trace_id}/shown",
    message: "/messages/{trace_id}",
    skill: "/skill",
    skill_language: "/skill/{lang}",
    ready: "/ready",
    metrics: "/metrics",
    activity: "/activity",
    events: "/events",
    openapi: "/openapi.json",
    schemas: "/schemas",
    schema: "/schemas/{file}",
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
    accept_channel: "/channels/{id}/members/{name}/accept",
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
    job_callback: "/jobs/{id}/result/{secret}",
    job_answer: "/jobs/{id}/answer",
    job_claim: "/jobs/{id}/claim",
    job_approve: "/jobs/{id}/approve",
    job_reject: "/jobs/{id}/reject",
    board: "/board",
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

#[cfg(test)]
mod tests {
    use super::*;

    /// TRN-50, R-14
    #[test]
    fn the_endpoints_of_the_document_come_first() {
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
