//! The console: the page on which people watch a hub and answer its agents, served from the binary. It has no route of its
//! own to data: what it shows comes through the public routes, with the key of whoever looks.

mod assets;

use crate::{doors::Doors, query::Segment, reply::Answer};
use assets::{INDEX, found};
use axum::response::Response;
use chorus_wire::Code;
use http::HeaderMap;
use utoipa_axum::{router::OpenApiRouter, routes};

pub use assets::page;

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(front))
        .routes(routes!(console))
        .routes(routes!(docs))
        .routes(routes!(file))
}

/// The console, for whoever opens the hub in a browser
#[utoipa::path(get, path = "/", tag = "ops", responses((status = 200, content_type = "text/html", body = String)))]
async fn front(headers: HeaderMap) -> Answer {
    index(&headers)
}

/// The console: a page that asks for a key and shows what that key may see
#[utoipa::path(get, path = "/console", tag = "ops", responses((status = 200, content_type = "text/html", body = String)))]
async fn console(headers: HeaderMap) -> Answer {
    index(&headers)
}

/// The contract, browsable
#[utoipa::path(get, path = "/docs", tag = "ops", responses((status = 200, content_type = "text/html", body = String)))]
async fn docs(headers: HeaderMap) -> Answer {
    index(&headers)
}

fn index(headers: &HeaderMap) -> Answer {
    Ok(found(headers, INDEX).ok_or(Code::NotFound)?)
}

/// A file of the page
#[utoipa::path(get, path = "/console/{file}", tag = "ops", params(("file" = String, Path)),
    responses((status = 200, content((String = "text/javascript"), (String = "text/css"), (String = "image/svg+xml"))),
        (status = 304, description = "The one you have is still good"),
        (status = 404, body = chorus_wire::reply::Failure)))]
async fn file(headers: HeaderMap, Segment(name): Segment) -> Answer {
    let response: Option<Response> = found(&headers, &name);
    Ok(response.ok_or(Code::NotFound)?)
}
