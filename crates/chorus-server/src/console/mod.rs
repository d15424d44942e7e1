//! The console: a page for people, served from the binary. It reads data only through the public routes, with the user's key.

mod assets;
mod embedded_files;
mod sign_in;

use crate::http::{app_state::AppState, path_params::PathParam, reply::ApiResult};
use assets::{INDEX_FILE, file_response};
use axum::response::Response;
use chorus_wire::ErrorCode;
use http::HeaderMap;
use utoipa_axum::{router::OpenApiRouter, routes};

pub use assets::render_console_page;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(get_home))
        .routes(routes!(get_console))
        .routes(routes!(get_docs))
        .routes(routes!(get_console_file))
        .merge(sign_in::routes())
}

/// Get the console at the root
///
/// The page for people, at the address of the hub.
#[utoipa::path(get, path = "/", tag = "ops",
    responses((status = 200, content_type = "text/html", body = String, description = "The page."), (status = 304, description = "The copy that `If-None-Match` names is current.")))]
async fn get_home(headers: HeaderMap) -> ApiResult {
    index_response(&headers)
}

/// Get the console
///
/// A page that asks for a key and shows what that key may see.
#[utoipa::path(get, path = "/console", tag = "ops",
    responses((status = 200, content_type = "text/html", body = String, description = "The page."), (status = 304, description = "The copy that `If-None-Match` names is current.")))]
async fn get_console(headers: HeaderMap) -> ApiResult {
    index_response(&headers)
}

/// Get the API reference
///
/// This document as a page for people.
#[utoipa::path(get, path = "/docs", tag = "ops",
    responses((status = 200, content_type = "text/html", body = String, description = "The page."), (status = 304, description = "The copy that `If-None-Match` names is current.")))]
async fn get_docs(headers: HeaderMap) -> ApiResult {
    index_response(&headers)
}

fn index_response(headers: &HeaderMap) -> ApiResult {
    Ok(file_response(headers, INDEX_FILE).ok_or(ErrorCode::NotFound)?)
}

/// Get a file of the console
///
/// Scripts, styles and pictures of the page.
#[utoipa::path(get, path = "/console/{file}", tag = "ops", params(("file" = String, Path, description = "The name of the file")),
    responses((status = 200, description = "The file.", content((String = "text/javascript"), (String = "text/css"), (String = "image/svg+xml"), (String = "text/html"))),
        (status = 304, description = "The copy that `If-None-Match` names is current."),
        (status = 404, description = "There is no such file.")))]
async fn get_console_file(headers: HeaderMap, PathParam(name): PathParam) -> ApiResult {
    let response: Option<Response> = file_response(&headers, &name);
    Ok(response.ok_or(ErrorCode::NotFound)?)
}
