//! `POST /frames`: one frame to the live sessions of a scope (FRM-63…66, R-41, R-43).

use crate::http::api_error::ApiError;
use crate::http::query::QueryParams;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, body::JsonBytes};
use axum::extract::{FromRequestParts, State};
use chorus_hub::frame::{self, FrameSubmitter};
use chorus_wire::frame::{FrameError, ScopeIdent, SubmissionReply};
use http::{HeaderMap, StatusCode, request::Parts};
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(submit_frame))
}

/// The submitting session, from the headers and the query.
pub(super) struct SubmitterHeaders(pub FrameSubmitter);

impl FromRequestParts<AppState> for SubmitterHeaders {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let query = QueryParams::from_request_parts(parts, state).await?;
        let exclude_self = match query.get_single("exclude_self")? {
            None | Some("0" | "false") => false,
            Some("1" | "true") => true,
            Some(_) => return Err(FrameError::invalid_field("exclude_self", "0 or 1").into()),
        };
        Ok(Self(FrameSubmitter {
            instrument: parse_ident_header(&parts.headers, "X-Chorus-Instrument")?,
            session: parse_ident_header(&parts.headers, "X-Chorus-Session")?,
            tool: parse_ident_header(&parts.headers, "X-Chorus-Tool")?,
            exclude_self,
        }))
    }
}

/// Parses a session header. A malformed one is refused, because the frame would carry a name that no session has.
fn parse_ident_header(headers: &HeaderMap, name: &str) -> Result<Option<ScopeIdent>, FrameError> {
    let mut found = headers.get_all(name).iter();
    let Some(value) = found.next() else {
        return Ok(None);
    };
    let ident = value
        .to_str()
        .ok()
        .and_then(ScopeIdent::parse)
        .filter(|_| found.next().is_none());
    ident
        .map(Some)
        .ok_or_else(|| FrameError::invalid_field(name, ScopeIdent::REQUIREMENT))
}

/// Submit a frame
///
/// Sends a frame to the live sessions of a scope. A repeated `frame_id` gets the first reply again and is delivered once. Locks,
/// decisions and handovers are also kept until they end; `kept` says so, and they are listed under `/handles/{handle}/open`.
#[utoipa::path(post, path = "/frames", tag = "frame", request_body = chorus_wire::frame::FrameSubmission, security(("agent_key" = ["frames"])),
    params(("exclude_self" = Option<String>, Query, pattern = "^(0|1|false|true)$", description = "`1`: the submitting session does not get its own frame"),
        ("X-Chorus-Instrument" = Option<String>, Header, description = "The instrument of the submitting session"),
        ("X-Chorus-Session" = Option<String>, Header, description = "The id of the submitting session"),
        ("X-Chorus-Tool" = Option<String>, Header, description = "Its class of tool; the instrument up to its first `-` by default")),
    responses((status = 200, body = SubmissionReply, description = "How many sessions got the frame."),
        (status = 403, description = "The frame speaks for another handle, or the sender may not address the scope."),
        (status = 501, description = "The scope is well-formed, but this hub does not expand it.")))]
async fn submit_frame(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    SubmitterHeaders(submitter): SubmitterHeaders,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &frame::submit_frame(&principal, state.hub.frames(), &body, submitter).await?,
    )
}
