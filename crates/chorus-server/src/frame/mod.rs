//! The routes of frames, their streams, grants, organisations and accords. Errors have the form of the draft.

mod accords;
mod discovery;
mod grants;
mod open_items;
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
        .merge(open_items::routes())
        .merge(grants::routes())
        .merge(organisations::routes())
        .merge(accords::routes())
        .merge(discovery::routes())
}
