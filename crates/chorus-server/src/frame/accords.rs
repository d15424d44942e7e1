//! `/orgs/{org}/accords`: what organisations let one another address.

use crate::query::{Pair, Segment};
use crate::reply::{self, Answer};
use crate::{auth::Known, body::Whole, doors::Doors};
use axum::extract::State;
use chorus_hub::frame::accords;
use chorus_wire::frame::FrameFailure;
use chorus_wire::frame::org::{Accord, Accords, NewAccord};
use http::StatusCode;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(list, propose))
        .routes(routes!(accept))
        .routes(routes!(revoke))
}

/// What is offered to another organisation.
#[derive(ToSchema)]
#[schema(example = json!({"grantee": "~peer", "grant": "ops", "reaches": "*", "expires_at": "2030-01-01T00:00:00Z"}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/frame/org.rs reads it"
)]
struct AccordBody {
    /// The organisation whose members may then address `accord:~grantor/grant:…`.
    grantee: String,
    /// The name of the grant, compared exactly.
    grant: String,
    /// Whom they reach: `*` for all members, or a role.
    reaches: String,
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// Propose an accord to another organisation; for owners of the granting one
#[utoipa::path(post, path = "/orgs/{org}/accords", tag = "frame", request_body = AccordBody, security(("agent_key" = [])),
    params(("org" = String, Path, description = "The one that grants, with or without ~")),
    responses((status = 201, body = Accord), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure), (status = 409, body = FrameFailure)))]
async fn propose(
    State(doors): State<Doors>,
    Known(who): Known,
    Segment(org): Segment,
    Whole(body): Whole,
) -> Answer {
    let new = NewAccord::parse(&body, doors.hub.clock().now())?;
    reply::bare(
        StatusCode::CREATED,
        &accords::propose(&who, &doors.hub, &org, new).await?,
    )
}

/// What an organisation has granted and was granted; for its owners
#[utoipa::path(get, path = "/orgs/{org}/accords", tag = "frame", security(("agent_key" = [])),
    params(("org" = String, Path, description = "With or without ~")),
    responses((status = 200, body = Accords), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure)))]
async fn list(State(doors): State<Doors>, Known(who): Known, Segment(org): Segment) -> Answer {
    reply::bare(
        StatusCode::OK,
        &accords::list(&who, &doors.hub, &org).await?,
    )
}

/// Accept what another organisation proposed; for owners of the one it was offered to
#[utoipa::path(post, path = "/orgs/{org}/accords/{id}/accept", tag = "frame", security(("agent_key" = [])),
    params(("org" = String, Path, description = "The one that was offered it"), ("id" = String, Path)),
    responses((status = 200, body = Accord), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure), (status = 409, body = FrameFailure, description = "Its time is over")))]
async fn accept(State(doors): State<Doors>, Known(who): Known, Pair(org, id): Pair) -> Answer {
    reply::bare(
        StatusCode::OK,
        &accords::accept(&who, &doors.hub, &org, &id).await?,
    )
}

/// End an accord, from either side; it is dead with this answer
#[utoipa::path(delete, path = "/orgs/{org}/accords/{id}", tag = "frame", security(("agent_key" = [])),
    params(("org" = String, Path, description = "Either side"), ("id" = String, Path)),
    responses((status = 200, body = Accord), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure)))]
async fn revoke(State(doors): State<Doors>, Known(who): Known, Pair(org, id): Pair) -> Answer {
    reply::bare(
        StatusCode::OK,
        &accords::revoke(&who, &doors.hub, &org, &id).await?,
    )
}
