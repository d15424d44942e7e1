//! All rooms merged into one router, with the edges that belong to none of them.

use crate::{
    app_state::AppState, channel, console, discover, envelope, frame, front, market, mcp, openapi,
    ops, reply::ApiError,
};
use axum::{Router, middleware};
use chorus_wire::Code;
use utoipa_axum::router::OpenApiRouter;

pub fn build_router(state: AppState) -> Router {
    let (router, api) = all_routes().split_for_parts();
    // Set here and nowhere else, so it cannot be set already.
    let _ = state.openapi_document.set(openapi::finish_document(api));
    router
        .fallback(async || ApiError::from(Code::NotFound))
        .method_not_allowed_fallback(async || ApiError::from(Code::MethodNotAllowed))
        .layer(middleware::from_fn_with_state(
            state.clone(),
            front::process_request,
        ))
        .with_state(state)
}

/// Every route and, from the same lines, the contract.
pub fn all_routes() -> OpenApiRouter<AppState> {
    openapi::base_router()
        .merge(envelope::routes())
        .merge(discover::routes())
        .merge(frame::routes())
        .merge(market::routes())
        .merge(channel::routes())
        .merge(mcp::routes())
        .merge(ops::routes())
        .merge(openapi::routes())
        .merge(console::routes())
}
