//! RFC 9728: what a client that was refused finds out about the door it stands before.

use crate::doors::Doors;
use crate::query::Segment;
use crate::reply::{self, Answer};
use axum::extract::State;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(hub))
        .routes(routes!(tools))
        .routes(routes!(channel_tools))
}

/// No authorisation server is named, because there is none: a key comes from `POST /register`, a channel's token with a delivery.
#[derive(Serialize, ToSchema)]
struct Resource {
    resource: String,
    resource_name: String,
    bearer_methods_supported: [&'static str; 1],
    /// Where it is written how a key is got.
    resource_documentation: String,
}

/// What `WWW-Authenticate` says to whoever is refused at `path`.
pub fn challenge(doors: &Doors, path: &str) -> HeaderValue {
    if !is_plain(path) {
        return HeaderValue::from_static("Bearer realm=\"chorus\"");
    }
    let text = format!(
        "Bearer realm=\"chorus\", resource_metadata=\"{}{WELL_KNOWN}{path}\"",
        doors.public_url
    );
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("Bearer realm=\"chorus\""))
}

/// What can stand in a header between quotes, and be the path of a room.
fn is_plain(path: &str) -> bool {
    path.bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'/'))
}

fn document(doors: &Doors, path: &str) -> Answer {
    let url = &doors.public_url;
    let document = Resource {
        resource: format!("{url}{path}"),
        resource_name: doors.server_name.clone(),
        bearer_methods_supported: ["header"],
        resource_documentation: format!("{url}/skill"),
    };
    let mut response = reply::bare(StatusCode::OK, &document)?;
    response.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=60"),
    );
    Ok(response)
}

/// What protects this hub
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource", tag = "mcp", responses((status = 200, body = Resource)))]
async fn hub(State(doors): State<Doors>) -> Answer {
    document(&doors, "")
}

/// What protects the hub's tools
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource/mcp", tag = "mcp", responses((status = 200, body = Resource)))]
async fn tools(State(doors): State<Doors>) -> Answer {
    document(&doors, "/mcp")
}

/// What protects the tools of a channel; whether there is such a channel is not said
#[utoipa::path(get, path = "/.well-known/oauth-protected-resource/mcp/{channel}", tag = "mcp",
    params(("channel" = String, Path)), responses((status = 200, body = Resource)))]
async fn channel_tools(State(doors): State<Doors>, Segment(channel): Segment) -> Answer {
    if !is_plain(&channel) || channel.contains('/') {
        return Err(chorus_wire::Code::NotFound.into());
    }
    document(&doors, &format!("/mcp/{channel}"))
}
