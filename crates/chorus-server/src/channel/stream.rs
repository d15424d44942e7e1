//! `GET /channels/{id}/stream`: what is said and done in a room, live, durable and resumable.

use crate::query::{Query, Resume, Segment};
use crate::{auth, auth::Asked, doors::Doors, reply::Answer, stream};
use axum::extract::State;
use chorus_hub::channel::history;
use chorus_wire::reply::Failure;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(follow))
}

/// Follow a channel: a stream of `connected`, `message`, `tool_call`, `tool_result`, `status`, `error` and `member` events that
/// stays open
#[utoipa::path(get, path = "/channels/{id}/stream", tag = "channel", security(("agent_key" = []), ("operator_key" = [])),
    params(("id" = String, Path),
        ("Last-Event-ID" = Option<u64>, Header, description = "First replay everything after this id; wins over since"),
        ("since" = Option<u64>, Query, description = "First replay everything after this id"),
        ("session" = Option<String>, Query, description = "A token of POST /agent/session, instead of the key")),
    responses((status = 200, content_type = "text/event-stream", body = String), (status = 401, body = Failure),
        (status = 404, body = Failure)))]
async fn follow(
    State(doors): State<Doors>,
    Segment(id): Segment,
    query: Query,
    Resume(since): Resume,
    asked: Asked,
) -> Answer {
    let who = auth::reader(&doors, &query, asked).await?;
    Ok(stream::reply(
        history::stream(&who, &doors.hub, &id, since).await?,
    ))
}
