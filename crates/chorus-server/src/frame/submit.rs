//! `POST /frames`: one frame to the live sessions of a scope (FRM-63…66, R-41, R-43).

use crate::query::Query;
use crate::reply::{self, Answer, Refused};
use crate::{auth::Known, body::Whole, doors::Doors};
use axum::extract::{FromRequestParts, State};
use chorus_hub::frame::{self, Submitter};
use chorus_wire::frame::{FrameError, FrameFailure, Ident, Submitted};
use http::{HeaderMap, StatusCode, request::Parts};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(submit))
}

/// A frame and whom it is for.
#[derive(ToSchema)]
#[schema(example = json!({"scope": "~alice/cc-*", "frame": {"envelope_version": "1.0",
    "frame_id": "0b6f1c5e-8d3a-4f0e-9a57-2f6f3f0c9d11", "kind": "agent_advisory", "sender_handle": "~alice",
    "recipient_handle": "~alice", "created_at": "2026-03-20T10:00:00Z",
    "payload": {"advisory_text": "Editing the parser, please stay out of src/parse.rs"}, "acted_by": "~alice",
    "drafted_with": "~cc-editor", "provenance_compute_location": "local-only", "provenance_method": ["session-context"],
    "provenance_context_check": "passed", "provenance_basis": "coordination"}}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/frame reads it"
)]
struct FrameSubmission {
    /// Whom it is for; the recipient's handle without it. The forms are in the discovery document.
    scope: Option<String>,
    /// The frame; its fields and those of every payload are in the discovery document.
    #[schema(value_type = Object)]
    frame: String,
}

/// Who submits, from the headers and the query.
struct From(Submitter);

impl FromRequestParts<Doors> for From {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, doors: &Doors) -> Result<Self, Refused> {
        let query = Query::from_request_parts(parts, doors).await?;
        let exclude_self = match query.one("exclude_self")? {
            None | Some("0" | "false") => false,
            Some("1" | "true") => true,
            Some(_) => return Err(FrameError::invalid("exclude_self", "0 or 1").into()),
        };
        Ok(Self(Submitter {
            instrument: ident(&parts.headers, "X-Chorus-Instrument")?,
            session: ident(&parts.headers, "X-Chorus-Session")?,
            tool: ident(&parts.headers, "X-Chorus-Tool")?,
            exclude_self,
        }))
    }
}

/// said wrongly it is refused, since the frame would go out under a name that is nobody's.
fn ident(headers: &HeaderMap, name: &str) -> Result<Option<Ident>, FrameError> {
    let mut found = headers.get_all(name).iter();
    let Some(value) = found.next() else {
        return Ok(None);
    };
    let ident = value
        .to_str()
        .ok()
        .and_then(Ident::parse)
        .filter(|_| found.next().is_none());
    ident
        .map(Some)
        .ok_or_else(|| FrameError::invalid(name, Ident::MUST))
}

/// Submit a frame to the live sessions of a scope
#[utoipa::path(post, path = "/frames", tag = "frame", request_body = FrameSubmission, security(("agent_key" = [])),
    params(("exclude_self" = Option<u8>, Query, description = "1: the submitting session does not hear its own frame"),
        ("X-Chorus-Instrument" = Option<String>, Header, description = "The submitting session's instrument"),
        ("X-Chorus-Session" = Option<String>, Header, description = "The submitting session's id"),
        ("X-Chorus-Tool" = Option<String>, Header, description = "Its class of tool; the instrument up to its first '-' without")),
    responses((status = 200, body = Submitted, description = "To how many it went; a repeated frame_id gets the first answer"),
        (status = 401, body = FrameFailure), (status = 403, body = FrameFailure, description = "Not as this sender, or not to this scope")))]
async fn submit(
    State(doors): State<Doors>,
    Known(who): Known,
    From(from): From,
    Whole(body): Whole,
) -> Answer {
    reply::bare(
        StatusCode::OK,
        &frame::submit(&who, &doors.hub, &body, from).await?,
    )
}
