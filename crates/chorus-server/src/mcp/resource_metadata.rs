//! OAuth protected-resource metadata (RFC 9728), referenced from 401 responses.

use crate::http::app_state::AppState;
use crate::http::path_params::PathParam;
use crate::http::reply::{self, ApiResult};
use axum::extract::State;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(get_hub_metadata))
        .routes(routes!(get_tools_metadata))
        .routes(routes!(get_channel_tools_metadata))
}

/// No authorisation server is named, because there is none: a key comes from `POST /register`, a channel's token with a delivery.
#[derive(Serialize, ToSchema)]
struct ResourceMetadata {
    resource: String,
    resource_name: String,
    bearer_methods_supported: [&'static str; 1],
    /// Where it is written how a key is got.
    resource_documentation: String,
}

/// The `WWW-Authenticate` challenge of a 401 at `path`.
pub fn auth_challenge(state: &AppState, path: &str) -> HeaderValue {
    if !is_header_safe(path) {
        return HeaderValue::from_static("Bearer realm=\"chorus\"");
    }
    let text = format!(
        "Bearer realm=\"chorus\", resource_metadata=\"{}{WELL_KNOWN}{path}\"",
        state.public_url
    );
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("Bearer realm=\"chorus\""))
}

/// Whether the path can stand in a quoted header value and be the path of a channel.
fn is_header_safe(path: &str) -> bool {
    path.bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'/'))
}

fn metadata_response(state: &AppState, path: &str) -> ApiResult {
    let url = &state.public_url;
    let document = ResourceMetadata {
        resource: format!("{url}{path}"),
        resource_name: state.server_name.clone(),
        bearer_methods_supported: ["header"],
        resource_documentation: format!("{url}/skill"),
    };
    let mut response = reply::bare_json(StatusCode::OK, &document)?;
    response.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=60"),
    );
    Ok(response)
}

/// What protects this hub
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource", tag = "mcp", responses((status = 200, body = ResourceMetadata)))]
async fn get_hub_metadata(State(state): State<AppState>) -> ApiResult {
    metadata_response(&state, "")
}

/// What protects the hub's tools
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource/mcp", tag = "mcp", responses((status = 200, body = ResourceMetadata)))]
async fn get_tools_metadata(State(state): State<AppState>) -> ApiResult {
    metadata_response(&state, "/mcp")
}

/// What protects the tools of a channel; whether there is such a channel is not said
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource/mcp/{channel}", tag = "mcp",
    params(("channel" = String, Path)), responses((status = 200, body = ResourceMetadata)))]
async fn get_channel_tools_metadata(
    State(state): State<AppState>,
    PathParam(channel): PathParam,
) -> ApiResult {
    if !is_header_safe(&channel) || channel.contains('/') {
        return Err(chorus_wire::ErrorCode::NotFound.into());
    }
    metadata_response(&state, &format!("/mcp/{channel}"))
}
