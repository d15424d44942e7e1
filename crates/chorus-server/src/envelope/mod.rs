//! The doors of agents and their messages; each file mounts its own routes.

mod agents;
mod discovery_document;
mod history;
mod inbox;
mod invite_page;
mod invites;
mod messages;
mod register;
mod skill;

pub use agents::parse_page;
pub use skill::{SKILL_TEXTS, skill_text};

use crate::app_state::AppState;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .merge(register::routes())
        .merge(agents::routes())
        .merge(invite_page::routes())
        .merge(invites::routes())
        .merge(messages::routes())
        .merge(inbox::routes())
        .merge(history::routes())
        .merge(skill::routes())
        .merge(discovery_document::routes())
}
