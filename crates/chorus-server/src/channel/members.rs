//! `/channels/{id}/members`: who is in a room, and who comes and goes (CHN-01…03, R-78).

use crate::query::{Pair, Segment};
use crate::reply::{self, Answer};
use crate::{auth::Known, body::Whole, doors::Doors};
use axum::extract::State;
use chorus_hub::channel::{members, roster};
use chorus_wire::channel::room::{Member, NewMember, Removed};
use chorus_wire::reply::{Failure, Success};
use http::StatusCode;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(add, list))
        .routes(routes!(remove))
}

/// Exactly one of connection and agent_id.
#[derive(ToSchema)]
#[schema(example = json!({"connection": "https://agent.example.com/inbox/sk_…", "name": "timber", "deliver": "all"}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/channel/room.rs reads it"
)]
struct MemberBody {
    /// The agent's connection string. It is kept encrypted and never shown again.
    connection: Option<String>,
    /// An agent of this hub, by any of its names.
    agent_id: Option<String>,
    /// What it is called here; required with a connection, else the agent's own name.
    name: Option<String>,
    /// `all`, which is the default, or `mentions`.
    deliver: Option<String>,
    /// With a connection: what deliveries are signed with, as Standard Webhooks has it.
    signing_secret: Option<String>,
}

/// Let an agent in, by its connection string or its name; for the owner
#[utoipa::path(post, path = "/channels/{id}/members", tag = "channel", request_body = MemberBody, params(("id" = String, Path)),
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 201, body = Success<Member>), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 409, body = Failure, description = "The name is taken in this channel")))]
async fn add(
    State(doors): State<Doors>,
    Known(who): Known,
    Segment(id): Segment,
    Whole(body): Whole,
) -> Answer {
    let new = NewMember::parse(&body)?;
    reply::wrapped(
        &doors,
        StatusCode::CREATED,
        members::add(&who, &doors.hub, &id, new).await?,
    )
}

/// Who is in a channel, and what each is doing just now
#[utoipa::path(get, path = "/channels/{id}/members", tag = "channel", params(("id" = String, Path)),
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = Success<Vec<Member>>), (status = 401, body = Failure), (status = 404, body = Failure)))]
async fn list(State(doors): State<Doors>, Known(who): Known, Segment(id): Segment) -> Answer {
    reply::wrapped(
        &doors,
        StatusCode::OK,
        roster::roster(&who, &doors.hub, &id).await?,
    )
}

/// Remove a member, or leave; its tokens are dead at once
#[utoipa::path(delete, path = "/channels/{id}/members/{name}", tag = "channel",
    params(("id" = String, Path), ("name" = String, Path)), security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = Success<Removed>), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 409, body = Failure, description = "The owner stays")))]
async fn remove(State(doors): State<Doors>, Known(who): Known, Pair(id, name): Pair) -> Answer {
    reply::wrapped(
        &doors,
        StatusCode::OK,
        members::remove(&who, &doors.hub, &id, &name).await?,
    )
}
