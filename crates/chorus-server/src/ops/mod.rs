//! What operators and their machines ask.

pub mod activity;
pub mod health;
pub mod metrics;

use crate::app_state::AppState;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .merge(health::routes())
        .merge(metrics::routes())
        .merge(activity::routes())
}
