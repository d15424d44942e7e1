//! The doors of channels; each file mounts its own routes.

mod artifacts;
mod callback;
mod host;
mod members;
mod messages;
pub mod places;
mod rooms;
mod stream;

use crate::doors::Doors;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .merge(rooms::routes())
        .merge(members::routes())
        .merge(messages::routes())
        .merge(stream::routes())
        .merge(artifacts::routes())
        .merge(callback::routes())
        .merge(host::routes())
}
