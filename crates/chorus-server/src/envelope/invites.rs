//! `/invites`: the codes that a gated hub asks for, made, listed and revoked by operators (lesson 9).

use crate::reply::{self, Answer};
use crate::{auth::Operator, auth::Who, body::Whole, doors::Doors, query::Segment};
use axum::extract::State;
use chorus_hub::identity::invites::{self, NewInvite};
use chorus_wire::reply::{Failure, Invite, Success};
use chorus_wire::{Error, Result, json, limits, time::Micros};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(list, create, open))
        .routes(routes!(revoke))
}

/// A new invite.
#[derive(ToSchema)]
#[schema(example = json!({"label": "workshop", "max_uses": 20, "expires_at": "2030-01-01T00:00:00Z"}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; `parse` reads it"
)]
struct InviteBody {
    label: String,
    max_uses: Option<u64>,
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

fn parse(body: &[u8]) -> Result<NewInvite> {
    let mut fields = json::object(json::text(body)?)?;
    let label = fields.optional_label("label", limits::LABEL_CHARS)?;
    let max_uses = fields.optional_count("max_uses", 1)?;
    let expires_at = fields.optional_string("expires_at")?;
    fields.end()?;
    let instant = |text: String| {
        Micros::parse(&text)
            .ok_or_else(|| Error::validation("expires_at must be an RFC 3339 instant"))
    };
    Ok(NewInvite {
        label: label.ok_or_else(|| Error::validation("label is required"))?,
        max_uses,
        expires_at: expires_at.map(instant).transpose()?,
    })
}

/// Make an invite code; it is shown this once
#[utoipa::path(post, path = "/invites", tag = "identity", request_body = InviteBody, security(("operator_key" = [])),
    responses((status = 201, body = Success<Invite>), (status = 401, body = Failure), (status = 403, body = Failure)))]
async fn create(State(doors): State<Doors>, Operator(who): Operator, Whole(body): Whole) -> Answer {
    reply::wrapped(
        &doors,
        StatusCode::CREATED,
        invites::create(&who, &doors.hub, parse(&body)?).await?,
    )
}

/// All invites, without their codes
#[utoipa::path(get, path = "/invites", tag = "identity", security(("operator_key" = [])),
    responses((status = 200, body = Success<Vec<Invite>>), (status = 401, body = Failure), (status = 403, body = Failure)))]
async fn list(State(doors): State<Doors>, Who(who): Who) -> Answer {
    reply::wrapped(
        &doors,
        StatusCode::OK,
        invites::list(&who, &doors.hub).await?,
    )
}

/// Whether a hub asks for codes.
#[derive(Serialize, ToSchema)]
struct Gate {
    invite_gating: bool,
}

/// Open the hub to registrations without a code; it closes again with the next code that is made
#[utoipa::path(delete, path = "/invites", tag = "identity", security(("operator_key" = [])),
    responses((status = 200, body = Success<Gate>), (status = 401, body = Failure), (status = 403, body = Failure)))]
async fn open(State(doors): State<Doors>, Who(who): Who) -> Answer {
    invites::open(&who, &doors.hub).await?;
    reply::wrapped(
        &doors,
        StatusCode::OK,
        Gate {
            invite_gating: false,
        },
    )
}

/// Revoke an invite; who came in with it stays
#[utoipa::path(delete, path = "/invites/{id}", tag = "identity", security(("operator_key" = [])),
    params(("id" = String, Path)),
    responses((status = 200, body = Success<Invite>), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure)))]
async fn revoke(State(doors): State<Doors>, Who(who): Who, Segment(id): Segment) -> Answer {
    reply::wrapped(
        &doors,
        StatusCode::OK,
        invites::revoke(&who, &doors.hub, &id).await?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lesson 9
    #[test]
    fn an_invite_needs_a_label_and_says_which_field_is_wrong() {
        let full =
            parse(br#"{"label":"a","max_uses":2,"expires_at":"1970-01-01T00:00:01Z"}"#).unwrap();
        assert_eq!(
            (full.label.as_str(), full.max_uses, full.expires_at),
            ("a", Some(2), Some(Micros(1_000_000)))
        );
        let cases = [
            ("{}", "label"),
            (r#"{"label":""}"#, "label"),
            (r#"{"label":"a","max_uses":0}"#, "max_uses"),
            (r#"{"label":"a","expires_at":"tomorrow"}"#, "expires_at"),
            (r#"{"label":"a","uses":1}"#, "uses"),
        ];
        for (body, field) in cases {
            assert!(
                parse(body.as_bytes()).unwrap_err().message.contains(field),
                "{body}"
            );
        }
    }
}
