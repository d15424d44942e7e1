//! The doors of agents and their messages; each file mounts its own routes.

mod agents;
mod history;
mod inbox;
mod invite;
mod invites;
mod messages;
mod register;
mod skill;
mod wellknown;

pub use agents::page;
pub use skill::{SKILLS, text as skill_text};

use crate::doors::Doors;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .merge(register::routes())
        .merge(agents::routes())
        .merge(invite::routes())
        .merge(invites::routes())
        .merge(messages::routes())
        .merge(inbox::routes())
        .merge(history::routes())
        .merge(skill::routes())
        .merge(wellknown::routes())
}
