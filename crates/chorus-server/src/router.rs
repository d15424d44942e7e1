//! Merges the routes of all modules into one router, with the middleware and the fallbacks.

use crate::http::request_service::RequestService;
use crate::http::route_scopes::RouteScopes;
use crate::http::{api_error::ApiError, app_state::AppState, front};
use crate::{
    channel, console, discover, envelope, frame, identity, market, mcp, openapi, ops, pages,
    schemas,
};
use axum::{Router, middleware};
use bytes::Bytes;
use chorus_wire::ErrorCode;
use utoipa_axum::router::OpenApiRouter;

/// The router, and before it the routes that are too busy for its layers.
pub fn build_service(state: AppState) -> RequestService {
    let router = build_router(state.clone());
    RequestService::new(state, router, envelope::direct_routes())
}

fn build_router(state: AppState) -> Router {
    let (router, api) = all_routes().split_for_parts();
    // Set only here, so they are never set already.
    let _ = state.route_scopes.set(RouteScopes::from_document(&api));
    let document = openapi::finish_document(api, &state.public_url);
    let _ = state.openapi_document.set(document.bytes);
    let _ = state.published_schemas.set(document.schemas);
    router
        .fallback(async || ApiError::from(ErrorCode::NotFound))
        .method_not_allowed_fallback(async || ApiError::from(ErrorCode::MethodNotAllowed))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            front::process_request,
        ))
        .with_state(state)
}

/// The OpenAPI document of a hub that is reached at `public_url`.
pub fn openapi_document(public_url: &str) -> Bytes {
    let (_, api) = all_routes().split_for_parts();
    openapi::finish_document(api, public_url).bytes
}

/// The schemas of all public objects by name, without a hub.
pub fn published_schemas() -> serde_json::Value {
    let (_, api) = all_routes().split_for_parts();
    openapi::finish_document(api, "").schemas
}

/// Every route, with its entry in the OpenAPI document.
pub fn all_routes() -> OpenApiRouter<AppState> {
    openapi::base_router()
        .merge(identity::routes())
        .merge(envelope::routes())
        .merge(discover::routes())
        .merge(frame::routes())
        .merge(market::routes())
        .merge(channel::routes())
        .merge(mcp::routes())
        .merge(ops::routes())
        .merge(openapi::routes())
        .merge(schemas::routes())
        .merge(console::routes())
        .merge(pages::routes())
}
