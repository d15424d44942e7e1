//! `GET /.well-known/mcp.json`: where a runtime that found this host by DNS finds the stream of a handle (FRM-113).

use crate::{doors::Doors, reply, reply::Answer};
use axum::extract::State;
use chorus_wire::frame::ENVELOPE_VERSION;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(substrate))
}

/// Whole addresses; what stands in braces is the caller's to fill in.
#[derive(Serialize, ToSchema)]
struct Substrate {
    name: String,
    version: &'static str,
    url: String,
    /// The host part of the addresses whose handles live here.
    host_name: String,
    /// The full discovery document.
    discovery: String,
    frames: FrameDoors,
}

#[derive(Serialize, ToSchema)]
struct FrameDoors {
    envelope_version: &'static str,
    submit: String,
    stream: String,
    roster: String,
}

/// Where frames are submitted and heard, for runtimes that found this host by its name
#[utoipa::path(get, path = "/.well-known/mcp.json", tag = "frame", responses((status = 200, body = Substrate)))]
async fn substrate(State(doors): State<Doors>) -> Answer {
    let url = &doors.public_url;
    let document = Substrate {
        name: doors.server_name.clone(),
        version: env!("CARGO_PKG_VERSION"),
        url: url.clone(),
        host_name: doors.hub.options().host_name.clone(),
        discovery: format!("{url}/.well-known/chorus.json"),
        frames: FrameDoors {
            envelope_version: ENVELOPE_VERSION,
            submit: format!("{url}/frames"),
            stream: format!("{url}/handles/{{handle}}/stream"),
            roster: format!("{url}/handles/{{handle}}/roster"),
        },
    };
    let mut response = reply::bare(StatusCode::OK, &document)?;
    response.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=60"),
    );
    Ok(response)
}
