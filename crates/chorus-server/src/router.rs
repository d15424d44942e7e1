//! All rooms merged into one router, with the edges that belong to none of them.

use crate::{
    channel, console, contract, discover, doors::Doors, envelope, frame, front, market, mcp, ops,
    reply::Refused,
};
use axum::{Router, middleware};
use chorus_wire::Code;
use utoipa_axum::router::OpenApiRouter;

pub fn build(doors: Doors) -> Router {
    let (router, api) = rooms().split_for_parts();
    // Set here and nowhere else, so it cannot be set already.
    let _ = doors.contract.set(contract::finish(api));
    router
        .fallback(async || Refused::from(Code::NotFound))
        .method_not_allowed_fallback(async || Refused::from(Code::MethodNotAllowed))
        .layer(middleware::from_fn_with_state(doors.clone(), front::around))
        .with_state(doors)
}

/// Every route and, from the same lines, the contract.
pub fn rooms() -> OpenApiRouter<Doors> {
    contract::opening()
        .merge(envelope::routes())
        .merge(discover::routes())
        .merge(frame::routes())
        .merge(market::routes())
        .merge(channel::routes())
        .merge(mcp::routes())
        .merge(ops::routes())
        .merge(contract::routes())
        .merge(console::routes())
}
