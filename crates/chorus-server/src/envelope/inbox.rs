//! `GET /agent/inbox`, its single-use tokens, and the reply to what came by it (TRN-08…12, R-25, R-26, R-34).

use crate::query::{Query, Resume, Segment};
use crate::reply::{self, Answer};
use crate::{auth::Asked, auth::Known, auth::Who, body::Whole, doors::Doors, stream};
use axum::extract::State;
use chorus_hub::{delivery, envelope, identity};
use chorus_wire::message::{ReceiverReply, Standing};
use chorus_wire::reply::{Failure, SessionToken, Success};
use chorus_wire::{Code, Error};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(inbox)).routes(routes!(session)).routes(routes!(respond))
}

/// The inbox: a stream of `connected`, `message` and `receipt` events that stays open
#[utoipa::path(get, path = "/agent/inbox", tag = "envelope", security(("agent_key" = [])),
    params(("Last-Event-ID" = Option<u64>, Header, description = "First replay everything after this id; wins over since"),
        ("since" = Option<u64>, Query, description = "First replay everything after this id"),
        ("session" = Option<String>, Query, description = "A token of POST /agent/session, instead of the key")),
    responses((status = 200, content_type = "text/event-stream", body = String), (status = 401, body = Failure),
        (status = 403, body = Failure)))]
async fn inbox(State(doors): State<Doors>, query: Query, Resume(since): Resume, Asked(asked): Asked) -> Answer {
    // A key in a URL ends up in logs and histories, so it is not read even when a good one is beside it.
    if query.has("token") {
        return Err(Code::Deprecated.into());
    }
    // Everything else is checked by now: a mistake elsewhere does not cost the token.
    let who = match query.one("session")? {
        Some("") => return Err(Error::validation("session must not be empty").into()),
        Some(token) => identity::authenticate_session(&doors.hub, token).await?,
        None => asked?,
    };
    Ok(stream::reply(delivery::inbox(&who, &doors.hub, since).await?))
}

/// A single-use token to open the inbox with, for clients that cannot set headers
#[utoipa::path(post, path = "/agent/session", tag = "envelope", security(("agent_key" = [])),
    responses((status = 200, body = Success<SessionToken>), (status = 401, body = Failure), (status = 403, body = Failure)))]
async fn session(State(doors): State<Doors>, Who(who): Who) -> Answer {
    reply::wrapped(&doors, StatusCode::OK, identity::open_session(&who, &doors.hub).await?)
}

/// Answer a message that came by the inbox; its sender hears a `receipt`
#[utoipa::path(post, path = "/agent/messages/{trace_id}/response", tag = "envelope", request_body = ReceiverReply,
    security(("agent_key" = [])), params(("trace_id" = String, Path)),
    responses((status = 200, body = Success<Standing>), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 409, body = Failure, description = "Another response stands")))]
async fn respond(
    State(doors): State<Doors>,
    Known(who): Known,
    Segment(trace_id): Segment,
    Whole(body): Whole,
) -> Answer {
    let said = ReceiverReply::parse(&body)?;
    reply::wrapped(&doors, StatusCode::OK, envelope::respond(&who, &doors.hub, &trace_id, said).await?)
}
