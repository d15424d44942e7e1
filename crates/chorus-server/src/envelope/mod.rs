//! The routes of messages between agents: sending, the inbox, history, conversations.

mod conversations;
mod history;
mod history_body;
mod inbox;
mod messages;

use crate::http::app_state::AppState;
use crate::http::next_handler::DirectRoute;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .merge(messages::routes())
        .merge(inbox::routes())
        .merge(history::routes())
        .merge(conversations::routes())
}

/// Routes that are called without the router.
pub fn direct_routes() -> Vec<DirectRoute> {
    vec![messages::direct_route()]
}
