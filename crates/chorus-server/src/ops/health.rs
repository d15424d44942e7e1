//! `GET /health` and `GET /ready`: liveness and readiness (TRN-37, lesson 6).

use crate::http::{
    app_state::AppState,
    certificate_status::{CertificateReport, CertificateStatus},
    reply::{self, ApiResult},
};
use axum::extract::State;
use chorus_hub::ops::{self, ReadyMode};
use chorus_wire::reply::{HealthReport, SuccessReply};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(get_health))
        .routes(routes!(get_readiness))
}

/// Get the health and the counts of the hub
///
/// Answers as long as the hub runs.
#[utoipa::path(get, path = "/health", tag = "ops",
    responses((status = 200, body = SuccessReply<HealthReport>, description = "The hub is alive.")))]
async fn get_health(State(state): State<AppState>) -> ApiResult {
    reply::wrapped_json(&state, StatusCode::OK, ops::read_health(&state.hub).await?)
}

/// The state of the parts that the hub needs to serve.
#[derive(Serialize, ToSchema)]
struct ReadinessReport {
    #[schema(example = "ready")]
    status: &'static str,
    /// The store takes writes.
    #[schema(example = "ok")]
    store: &'static str,
    /// `local` for a hub alone, `ok` when it reaches the bus that it shares.
    #[schema(example = "local")]
    bus: &'static str,
    /// Only of a hub that gets its certificate from an authority.
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<CertificateReport>,
}

/// Check whether the hub can serve
///
/// Checks that its store takes writes and that it reaches the other hubs.
#[utoipa::path(get, path = "/ready", tag = "ops",
    responses((status = 200, body = SuccessReply<ReadinessReport>, description = "The hub can serve."),
        (status = 503, description = "The hub cannot serve right now.")))]
async fn get_readiness(State(state): State<AppState>) -> ApiResult {
    let bus = match ops::check_ready(&state.hub).await? {
        ReadyMode::Standalone => "local",
        ReadyMode::Clustered => "ok",
    };
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        ReadinessReport {
            status: "ready",
            store: "ok",
            bus,
            certificate: state
                .certificate
                .as_ref()
                .map(CertificateStatus::read_report),
        },
    )
}
