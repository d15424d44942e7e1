//! The routes of channels: channels, members, messages, streams, artifacts, callbacks and the agent host.

mod artifacts;
mod callback;
mod callback_stream;
mod channels;
mod host;
mod members;
mod messages;
mod stream;

use crate::http::app_state::AppState;
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
