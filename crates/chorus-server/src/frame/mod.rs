//! The doors of frames; each file mounts its own routes. Refusals here have the draft's own form.

mod accords;
mod discovery;
mod grants;
mod organisations;
mod roster;
mod stream;
mod submit;

use crate::http::app_state::AppState;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .merge(submit::routes())
        .merge(stream::routes())
        .merge(roster::routes())
        .merge(grants::routes())
        .merge(organisations::routes())
        .merge(accords::routes())
        .merge(discovery::routes())
}
