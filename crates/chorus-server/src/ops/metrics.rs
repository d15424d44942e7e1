//! `GET /metrics`: counts and times in Prometheus text form.

use crate::http::{app_state::AppState, reply, request_metrics};
use axum::response::Response;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(get_metrics))
}

/// Get metrics
///
/// Counts and times in the text format of Prometheus.
#[utoipa::path(get, path = "/metrics", tag = "ops",
    responses((status = 200, content_type = "text/plain", body = String, description = "The metrics.")))]
async fn get_metrics() -> Response {
    reply::text_response(
        StatusCode::OK,
        "text/plain; version=0.0.4; charset=utf-8",
        request_metrics::render_metrics(),
    )
}
