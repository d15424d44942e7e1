//! What operators and their machines ask.

pub mod activity;
pub mod health;
pub mod metrics;

use crate::doors::Doors;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .merge(health::routes())
        .merge(metrics::routes())
        .merge(activity::routes())
}
