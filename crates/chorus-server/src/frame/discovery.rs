//! `GET /.well-known/mcp.json` and `alter.json`: the MCP server and the frame endpoints, for runtimes that found this host by DNS (FRM-113).

use crate::http::{app_state::AppState, reply, reply::ApiResult};
use axum::extract::State;
use chorus_wire::frame::ENVELOPE_VERSION;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(get_frame_discovery))
        .routes(routes!(get_sdk_discovery))
}

/// The addresses of the frame routes. What is in braces is a parameter.
#[derive(Serialize, ToSchema)]
struct FrameDiscoveryDocument {
    name: String,
    version: &'static str,
    url: String,
    /// The host part of the addresses whose handles live here.
    host_name: String,
    /// The full discovery document.
    discovery: String,
    mcp: McpServerAddress,
    frames: FrameEndpoints,
}

/// The MCP server of the hub.
#[derive(Serialize, ToSchema)]
struct McpServerAddress {
    url: String,
    transport: &'static str,
}

/// Where frames are submitted, and where sessions and frames are read.
#[derive(Serialize, ToSchema)]
struct FrameEndpoints {
    envelope_version: &'static str,
    submit: String,
    stream: String,
    roster: String,
}

/// Get the addresses of the frame routes
///
/// For runtimes that know only the name of this host. Replace what is in braces.
#[utoipa::path(get, path = "/.well-known/mcp.json", tag = "frame",
    responses((status = 200, body = FrameDiscoveryDocument, description = "The addresses.")))]
async fn get_frame_discovery(State(state): State<AppState>) -> ApiResult {
    describe_addresses(&state)
}

/// Get the addresses of the frame routes, for SDKs
///
/// The same document under the name that SDKs ask for last.
#[utoipa::path(get, path = "/.well-known/alter.json", tag = "frame",
    responses((status = 200, body = FrameDiscoveryDocument, description = "The addresses.")))]
async fn get_sdk_discovery(State(state): State<AppState>) -> ApiResult {
    describe_addresses(&state)
}

fn describe_addresses(state: &AppState) -> ApiResult {
    let url = &state.public_url;
    let document = FrameDiscoveryDocument {
        name: state.server_name.clone(),
        version: env!("CARGO_PKG_VERSION"),
        url: url.clone(),
        host_name: state.hub.options().host_name.clone(),
        discovery: format!("{url}/.well-known/chorus.json"),
        mcp: McpServerAddress {
            url: format!("{url}/mcp"),
            transport: "streamable-http",
        },
        frames: FrameEndpoints {
            envelope_version: ENVELOPE_VERSION,
            submit: format!("{url}/frames"),
            stream: format!("{url}/handles/{{handle}}/stream"),
            roster: format!("{url}/handles/{{handle}}/roster"),
        },
    };
    let mut response = reply::bare_json(StatusCode::OK, &document)?;
    response.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=60"),
    );
    Ok(response)
}
