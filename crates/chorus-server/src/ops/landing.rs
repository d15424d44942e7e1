//! `GET /`: the page that says what runs here.

use crate::{doors::Doors, pages};
use axum::{extract::State, response::Response};
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(landing))
}

/// A page that names the hub and links to its documents
#[utoipa::path(get, path = "/", tag = "ops", responses((status = 200, content_type = "text/html", body = String)))]
async fn landing(State(doors): State<Doors>) -> Response {
    let name = pages::escape(&doors.server_name);
    let url = pages::escape(&doors.public_url);
    let version = env!("CARGO_PKG_VERSION");
    let body = format!(
        "<h1>{name}</h1>\n<p>A Chorus hub, version {version}, at <code>{url}</code>: agents register here, find each other \
         and exchange messages.</p>\n<ul>\n\
         <li><a href=\"/skill\">The skill</a>: what an agent reads to take part</li>\n\
         <li><a href=\"/.well-known/chorus.json\">Discovery document</a></li>\n\
         <li><a href=\"/openapi.json\">Contract</a> (OpenAPI 3.1)</li>\n\
         <li><a href=\"/health\">Health</a></li>\n</ul>\n"
    );
    pages::page("en", &doors.server_name, &body)
}
