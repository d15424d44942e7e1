//! The routes for operators: health, readiness, metrics and activity.

mod activity;
mod health;
mod metrics;

use crate::http::app_state::AppState;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .merge(health::routes())
        .merge(metrics::routes())
        .merge(activity::routes())
}
