//! `/orgs` and `/orgs/{org}/members`: organisations and who belongs to them.

use crate::query::{Pair, Segment};
use crate::reply::{self, Answer};
use crate::{auth::Known, body::Whole, doors::Doors};
use axum::extract::State;
use chorus_hub::frame::orgs;
use chorus_wire::frame::FrameFailure;
use chorus_wire::frame::org::{Ended, Member, Members, NewMember, NewOrg, Org};
use http::StatusCode;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(create))
        .routes(routes!(members))
        .routes(routes!(invite, remove))
        .routes(routes!(accept))
}

/// A new organisation.
#[derive(ToSchema)]
#[schema(example = json!({"handle": "~acme"}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/frame/org.rs reads it"
)]
struct OrgBody {
    handle: String,
}

/// The roles of a member; `owner` may change the organisation, all others mean what its members make of them.
#[derive(ToSchema)]
#[schema(example = json!({"roles": ["reviewer"]}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/frame/org.rs reads it"
)]
struct MemberBody {
    roles: Vec<String>,
}

/// Found an organisation; its founder is its first owner
#[utoipa::path(post, path = "/orgs", tag = "frame", request_body = OrgBody, security(("agent_key" = [])),
    responses((status = 201, body = Org), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 409, body = FrameFailure, description = "The handle is taken")))]
async fn create(State(doors): State<Doors>, Known(who): Known, Whole(body): Whole) -> Answer {
    reply::bare(
        StatusCode::CREATED,
        &orgs::create(&who, &doors.hub, NewOrg::parse(&body)?).await?,
    )
}

/// Who belongs to an organisation, for its members
#[utoipa::path(get, path = "/orgs/{org}/members", tag = "frame", security(("agent_key" = [])),
    params(("org" = String, Path, description = "With or without ~")),
    responses((status = 200, body = Members), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure)))]
async fn members(State(doors): State<Doors>, Known(who): Known, Segment(org): Segment) -> Answer {
    reply::bare(
        StatusCode::OK,
        &orgs::members(&who, &doors.hub, &org).await?,
    )
}

/// Invite a handle, or change the roles of a member; for owners
#[utoipa::path(put, path = "/orgs/{org}/members/{handle}", tag = "frame", request_body = MemberBody, security(("agent_key" = [])),
    params(("org" = String, Path, description = "With or without ~"), ("handle" = String, Path, description = "Who is invited")),
    responses((status = 200, body = Member), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure), (status = 409, body = FrameFailure, description = "Nobody would be left as owner")))]
async fn invite(
    State(doors): State<Doors>,
    Known(who): Known,
    Pair(org, member): Pair,
    Whole(body): Whole,
) -> Answer {
    reply::bare(
        StatusCode::OK,
        &orgs::invite(&who, &doors.hub, &org, &member, NewMember::parse(&body)?).await?,
    )
}

/// Remove a member, leave, or decline an invitation
#[utoipa::path(delete, path = "/orgs/{org}/members/{handle}", tag = "frame", security(("agent_key" = [])),
    params(("org" = String, Path, description = "With or without ~"), ("handle" = String, Path, description = "Who goes")),
    responses((status = 200, body = Ended), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure), (status = 409, body = FrameFailure, description = "The last owner stays")))]
async fn remove(State(doors): State<Doors>, Known(who): Known, Pair(org, member): Pair) -> Answer {
    reply::bare(
        StatusCode::OK,
        &orgs::remove(&who, &doors.hub, &org, &member).await?,
    )
}

/// Accept an invitation to my handle
#[utoipa::path(post, path = "/orgs/{org}/members/{handle}/accept", tag = "frame", security(("agent_key" = [])),
    params(("org" = String, Path, description = "With or without ~"), ("handle" = String, Path, description = "My own")),
    responses((status = 200, body = Member), (status = 401, body = FrameFailure), (status = 403, body = FrameFailure),
        (status = 404, body = FrameFailure, description = "There is no such invitation"), (status = 409, body = FrameFailure)))]
async fn accept(State(doors): State<Doors>, Known(who): Known, Pair(org, member): Pair) -> Answer {
    reply::bare(
        StatusCode::OK,
        &orgs::accept(&who, &doors.hub, &org, &member).await?,
    )
}
