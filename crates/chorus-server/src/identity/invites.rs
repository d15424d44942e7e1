//! `/invites`: operators create, list and revoke invite codes, and switch invite gating off (lesson 9).

use crate::http::reply::{self, ApiResult};
use crate::http::{
    app_state::AppState, auth::MaybeAuth, auth::RequireOperator, body::JsonBytes,
    path_params::PathParam,
};
use axum::extract::State;
use chorus_hub::identity::invites::{self, NewInvite};
use chorus_wire::reply::{FailureReply, InviteRecord, SuccessReply};
use chorus_wire::{Error, Result, json, limits, time::UnixMicros};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_invites, create_invite, open_registration))
        .routes(routes!(revoke_invite))
}

/// A new invite.
#[derive(ToSchema)]
#[schema(example = json!({"label": "workshop", "max_uses": 20, "expires_at": "2030-01-01T00:00:00Z"}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; `parse_invite` reads it"
)]
struct InviteBody {
    label: String,
    max_uses: Option<u64>,
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

fn parse_invite(body: &[u8]) -> Result<NewInvite> {
    let mut fields = json::parse_object(json::decode_utf8(body)?)?;
    let label = fields.optional_label("label", limits::LABEL_CHARS)?;
    let max_uses = fields.optional_count("max_uses", 1)?;
    let expires_at = fields.optional_string("expires_at")?;
    fields.reject_unknown()?;
    let parse_instant = |text: String| {
        UnixMicros::parse(&text)
            .ok_or_else(|| Error::validation("expires_at must be an RFC 3339 instant"))
    };
    Ok(NewInvite {
        label: label.ok_or_else(|| Error::validation("label is required"))?,
        max_uses,
        expires_at: expires_at.map(parse_instant).transpose()?,
    })
}

/// Make an invite code; it is shown this once
#[utoipa::path(post, path = "/invites", tag = "identity", request_body = InviteBody, security(("operator_key" = [])),
    responses((status = 201, body = SuccessReply<InviteRecord>), (status = 401, body = FailureReply), (status = 403, body = FailureReply)))]
async fn create_invite(
    State(state): State<AppState>,
    RequireOperator(principal): RequireOperator,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::CREATED,
        invites::create_invite(&principal, state.hub.identity(), parse_invite(&body)?).await?,
    )
}

/// All invites, without their codes
#[utoipa::path(get, path = "/invites", tag = "identity", security(("operator_key" = [])),
    responses((status = 200, body = SuccessReply<Vec<InviteRecord>>), (status = 401, body = FailureReply), (status = 403, body = FailureReply)))]
async fn list_invites(State(state): State<AppState>, MaybeAuth(principal): MaybeAuth) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        invites::list_invites(&principal, state.hub.identity()).await?,
    )
}

/// Whether a hub asks for codes.
#[derive(Serialize, ToSchema)]
struct InviteGateStatus {
    invite_gating: bool,
}

/// Open the hub to registrations without a code; it closes again with the next code that is made
#[utoipa::path(delete, path = "/invites", tag = "identity", security(("operator_key" = [])),
    responses((status = 200, body = SuccessReply<InviteGateStatus>), (status = 401, body = FailureReply), (status = 403, body = FailureReply)))]
async fn open_registration(
    State(state): State<AppState>,
    MaybeAuth(principal): MaybeAuth,
) -> ApiResult {
    invites::disable_invite_gating(&principal, state.hub.identity()).await?;
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        InviteGateStatus {
            invite_gating: false,
        },
    )
}

/// Revoke an invite; who came in with it stays
#[utoipa::path(delete, path = "/invites/{id}", tag = "identity", security(("operator_key" = [])),
    params(("id" = String, Path)),
    responses((status = 200, body = SuccessReply<InviteRecord>), (status = 401, body = FailureReply), (status = 403, body = FailureReply),
        (status = 404, body = FailureReply)))]
async fn revoke_invite(
    State(state): State<AppState>,
    MaybeAuth(principal): MaybeAuth,
    PathParam(id): PathParam,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        invites::revoke_invite(&principal, state.hub.identity(), &id).await?,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lesson 9
    #[test]
    fn an_invite_needs_a_label_and_says_which_field_is_wrong() {
        let full =
            parse_invite(br#"{"label":"a","max_uses":2,"expires_at":"1970-01-01T00:00:01Z"}"#)
                .unwrap();
        assert_eq!(
            (full.label.as_str(), full.max_uses, full.expires_at),
            ("a", Some(2), Some(UnixMicros(1_000_000)))
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
                parse_invite(body.as_bytes())
                    .unwrap_err()
                    .message
                    .contains(field),
                "{body}"
            );
        }
    }
}
