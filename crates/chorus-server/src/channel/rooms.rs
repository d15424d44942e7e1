//! `/channels` and `/channels/{id}`: rooms, made and described by their owners.

use crate::query::{Query, Segment};
use crate::reply::{self, Answer};
use crate::{auth::Known, body::Whole, doors::Doors};
use axum::extract::State;
use chorus_hub::channel::rooms;
use chorus_wire::channel::room::{Channel, ChannelChange, Deleted, NewChannel};
use chorus_wire::limits;
use chorus_wire::reply::{Failure, Success};
use http::StatusCode;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(create, list))
        .routes(routes!(show, change, delete))
}

/// A new channel.
#[derive(ToSchema)]
#[schema(example = json!({"name": "ops-team", "context": "Where the team coordinates operations."}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/channel/room.rs reads it"
)]
struct ChannelBody {
    name: String,
    /// What it is for; it goes with every delivery.
    context: Option<String>,
    /// Which service it is part of, for the agents in it.
    service: Option<String>,
}

/// What changes; null takes a context or a service away.
#[derive(ToSchema)]
#[schema(example = json!({"name": "ops"}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/channel/room.rs reads it"
)]
struct ChannelChangeBody {
    name: Option<String>,
    context: Option<String>,
    service: Option<String>,
}

/// Make a channel; its maker owns it
#[utoipa::path(post, path = "/channels", tag = "channel", request_body = ChannelBody,
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 201, body = Success<Channel>), (status = 401, body = Failure),
        (status = 409, body = Failure, description = "This agent owns as many as it may")))]
async fn create(State(doors): State<Doors>, Known(who): Known, Whole(body): Whole) -> Answer {
    let channel = rooms::create(&who, &doors.hub, NewChannel::parse(&body)?).await?;
    reply::wrapped(&doors, StatusCode::CREATED, channel)
}

/// The channels that I am in, oldest first; for operators all of them
#[utoipa::path(get, path = "/channels", tag = "channel", security(("agent_key" = []), ("operator_key" = [])),
    params(("after" = Option<String>, Query, description = "The id of a channel: those made after it"),
        ("limit" = Option<u64>, Query, description = "At most this many, up to 200")),
    responses((status = 200, body = Success<Vec<Channel>>), (status = 401, body = Failure), (status = 404, body = Failure)))]
async fn list(State(doors): State<Doors>, Known(who): Known, query: Query) -> Answer {
    let limit = query.limit(limits::ROOMS_PAGE)?;
    reply::wrapped(
        &doors,
        StatusCode::OK,
        rooms::list(&who, &doors.hub, query.one("after")?, limit).await?,
    )
}

/// A channel, for its members; strangers are told that there is none
#[utoipa::path(get, path = "/channels/{id}", tag = "channel", params(("id" = String, Path)),
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = Success<Channel>), (status = 401, body = Failure), (status = 404, body = Failure)))]
async fn show(State(doors): State<Doors>, Known(who): Known, Segment(id): Segment) -> Answer {
    reply::wrapped(
        &doors,
        StatusCode::OK,
        rooms::show(&who, &doors.hub, &id).await?,
    )
}

/// Rename or describe a channel; for its owner
#[utoipa::path(patch, path = "/channels/{id}", tag = "channel", request_body = ChannelChangeBody, params(("id" = String, Path)),
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = Success<Channel>), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure)))]
async fn change(
    State(doors): State<Doors>,
    Known(who): Known,
    Segment(id): Segment,
    Whole(body): Whole,
) -> Answer {
    let change = ChannelChange::parse(&body)?;
    reply::wrapped(
        &doors,
        StatusCode::OK,
        rooms::change(&who, &doors.hub, &id, change).await?,
    )
}

/// Delete a channel: its streams end and every token of it is dead; for its owner
#[utoipa::path(delete, path = "/channels/{id}", tag = "channel", params(("id" = String, Path)),
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = Success<Deleted>), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure)))]
async fn delete(State(doors): State<Doors>, Known(who): Known, Segment(id): Segment) -> Answer {
    reply::wrapped(
        &doors,
        StatusCode::OK,
        rooms::delete(&who, &doors.hub, &id).await?,
    )
}
