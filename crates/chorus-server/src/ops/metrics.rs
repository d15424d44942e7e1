//! `GET /metrics`: counts and times in Prometheus text form.

use crate::http::reply::{self, ApiResult};
use crate::http::{admission, app_state::AppState, auth, directory_access, request_metrics};
use axum::extract::State;
use chorus_hub::{Principal, ops};
use http::{StatusCode, request::Parts};
use std::net::IpAddr;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(get_metrics))
}

/// Get metrics
///
/// Counts and times in the text format of Prometheus. A hub that requires invites answers clients at private addresses and
/// operators.
#[utoipa::path(get, path = "/metrics", tag = "ops", security((), ("operator_key" = [])),
    responses((status = 200, content_type = "text/plain", body = String, description = "The metrics.")))]
async fn get_metrics(State(state): State<AppState>, parts: Parts) -> ApiResult {
    let client = admission::client_address(&parts.extensions);
    if !is_private_address(client) {
        let auth = auth::authenticate_request(&state, &parts.headers, client).await;
        match auth.outcome {
            Ok(Principal::Operator(_)) => {}
            Ok(Principal::Agent(_) | Principal::Anonymous) | Err(_) => {
                directory_access::check_open_directory(&state).await?;
            }
        }
    }
    // Read when it is asked for: a count that followed every post would be written for no reader most of the time.
    let pending = ops::count_pending_posts(&state.hub).await?;
    request_metrics::set_outbox_pending(pending);
    Ok(reply::text_response(
        StatusCode::OK,
        "text/plain; version=0.0.4; charset=utf-8",
        request_metrics::render_metrics(),
    ))
}

/// Whether a client is on this machine or in a private network, where scrapers are.
fn is_private_address(client: IpAddr) -> bool {
    match client.to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    }
}
