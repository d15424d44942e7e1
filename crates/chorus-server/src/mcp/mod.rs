//! The hub's verbs as tools for models: `/mcp` with an agent's key, `/mcp/{channel}` with the token of a delivery.

mod call;
mod channel;
mod door;
mod envelope;
mod frame;
mod hub;
mod market;
mod metadata;
mod origin;
mod page;
mod place;
mod prompts;
mod refusal;
mod resources;
mod room;
mod schema;
mod tool;

use crate::doors::Doors;
use rmcp::model::Tool;
use utoipa_axum::router::OpenApiRouter;

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .merge(door::routes())
        .merge(room::routes())
        .merge(metadata::routes())
}

/// The tools of `/mcp` as a host is shown them, for a server of its own that passes the calls on.
pub fn catalogue() -> Vec<Tool> {
    tool::shown(hub::verbs())
}
