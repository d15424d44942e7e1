//! The routes of identity: registration, agent records, invites, session tokens, and who may contact an agent.

mod agents;
mod contact;
mod endpoint_secret;
mod invite_page;
mod invites;
mod keys;
mod register;
mod session_token;
mod usage;

pub use agents::parse_page;

use crate::http::app_state::AppState;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .merge(register::routes())
        .merge(agents::routes())
        .merge(invite_page::routes())
        .merge(invites::routes())
        .merge(keys::routes())
        .merge(session_token::routes())
        .merge(contact::routes())
        .merge(endpoint_secret::routes())
        .merge(usage::routes())
}
