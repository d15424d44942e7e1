//! The doors of channels; each file mounts its own routes.

mod artifacts;
mod callback;
pub mod callback_slots;
mod channels;
mod host;
mod members;
mod messages;
mod stream;

use crate::app_state::AppState;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .merge(channels::routes())
        .merge(members::routes())
        .merge(messages::routes())
        .merge(stream::routes())
        .merge(artifacts::routes())
        .merge(callback::routes())
        .merge(host::routes())
}
