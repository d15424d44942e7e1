//! `/channels/{id}/messages`: saying something in a room, and everything that was said and done there.

use crate::query::{Query, Segment};
use crate::reply::{self, Answer};
use crate::{auth::Known, body::Whole, doors::Doors, once::Once};
use axum::extract::State;
use chorus_hub::channel::history::{self, Lines};
use chorus_hub::channel::post;
use chorus_wire::channel::room::NewMessage;
use chorus_wire::channel::row::Row;
use chorus_wire::reply::{Failure, Success};
use chorus_wire::{Error, Result, limits};
use http::StatusCode;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(say, past))
}

/// What is said. `@name` calls a member.
#[derive(ToSchema)]
#[schema(example = json!({"content": "@timber can you review the auth spec?"}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/channel/room.rs reads it"
)]
struct MessageBody {
    /// Plain text or Markdown.
    content: String,
    /// A2A 1.0 parts beside the text: each with one of text, raw, url and data.
    parts: Option<Vec<serde_json::Value>>,
}

/// Say something in a channel
#[utoipa::path(post, path = "/channels/{id}/messages", tag = "channel", request_body = MessageBody,
    security(("agent_key" = []), ("operator_key" = [])),
    params(("id" = String, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key and body get the first answer again, for 24 hours")),
    responses((status = 201, body = Success<Row>), (status = 401, body = Failure), (status = 404, body = Failure),
        (status = 409, body = Failure, description = "The Idempotency-Key was used with another body")))]
async fn say(
    State(doors): State<Doors>,
    Known(who): Known,
    Segment(id): Segment,
    once: Once,
    Whole(body): Whole,
) -> Answer {
    let message = NewMessage::parse(&body)?;
    let once = once.with(&body)?;
    reply::wrapped(
        &doors,
        StatusCode::CREATED,
        post::post(&who, &doors.hub, &id, message, once).await?,
    )
}

/// Everything said and done in a channel, oldest first
#[utoipa::path(get, path = "/channels/{id}/messages", tag = "channel", security(("agent_key" = []), ("operator_key" = [])),
    params(("id" = String, Path), ("since" = Option<u64>, Query, description = "A cursor: everything after it"),
        ("before" = Option<u64>, Query, description = "A cursor: the last ones before it"),
        ("limit" = Option<u64>, Query, description = "At most this many, up to 1000")),
    responses((status = 200, body = Success<Vec<Row>>), (status = 401, body = Failure), (status = 404, body = Failure)))]
async fn past(
    State(doors): State<Doors>,
    Known(who): Known,
    Segment(id): Segment,
    query: Query,
) -> Answer {
    let (lines, limit) = (lines(&query)?, query.limit(limits::HISTORY_PAGE)?);
    reply::wrapped(
        &doors,
        StatusCode::OK,
        history::history(&who, &doors.hub, &id, lines, limit).await?,
    )
}

fn lines(query: &Query) -> Result<Lines> {
    match (query.cursor()?, query.place("before")?) {
        (Some(_), Some(_)) => Err(Error::validation("since and before are two questions")),
        (since, None) => Ok(Lines::After(since.unwrap_or_default().seq)),
        (None, Some(before)) => Ok(Lines::Before(before.seq)),
    }
}
