//! `GET /handles/{handle}/stream`: the live frames of a handle's sessions (FRM-62…82, R-42).

use crate::http::path_params::PathParam;
use crate::http::query::QueryParams;
use crate::http::resume::FrameResume;
use crate::http::{app_state::AppState, auth::AuthResult, reply::ApiResult, stream};
use axum::extract::State;
use chorus_hub::frame::{self, FrameStreamRequest};
use chorus_hub::identity;
use chorus_wire::cursor::ResumePoint;
use chorus_wire::frame::{FrameError, FrameFailure};
use chorus_wire::Result;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(stream_frames))
}

/// The frames for my sessions: a stream of events named by kind that stays open
#[utoipa::path(get, path = "/handles/{handle}/stream", tag = "frame", security(("agent_key" = [])),
    params(("handle" = String, Path, description = "My own, such as ~alice"),
        ("filter" = Option<String>, Query, description = "axis:value clauses that must all hold, separated by commas"),
        ("instrument" = Option<String>, Query, description = "Who I am; `unknown` without"),
        ("session" = Option<String>, Query, description = "Which of my sessions; a random id without"),
        ("tool" = Option<String>, Query, description = "My class of tool; the instrument up to its first '-' without"),
        ("session_token" = Option<String>, Query, description = "A token of POST /agent/session, instead of the key"),
        ("Last-Event-ID" = Option<String>, Header, description = "First what is kept after this id; a `resume-gap` event says that something is not")),
    responses((status = 200, content_type = "text/event-stream", body = String), (status = 401, body = FrameFailure),
        (status = 403, body = FrameFailure, description = "Another handle's stream")))]
async fn stream_frames(
    State(state): State<AppState>,
    PathParam(handle): PathParam,
    query: QueryParams,
    FrameResume(resume): FrameResume,
    AuthResult(auth): AuthResult,
) -> ApiResult {
    let request = parse_stream_request(handle, &query, resume)?;
    let principal = match query.get_single("session_token")? {
        Some("") => {
            return Err(FrameError::invalid_field(
                "session_token",
                "a token of POST /agent/session",
            )
            .into());
        }
        Some(token) => {
            // Checked first, so that a mistake elsewhere does not consume the single-use token.
            request.check_fields()?;
            identity::authenticate_session(state.hub.identity(), token).await?
        }
        None => auth?,
    };
    Ok(stream::stream_response(
        frame::open_stream(&principal, state.hub.frames(), request).await?,
    ))
}

fn parse_stream_request(
    handle: String,
    query: &QueryParams,
    resume: ResumePoint,
) -> Result<FrameStreamRequest> {
    let get_text = |name: &str| query.get_single(name).map(|value| value.map(str::to_owned));
    Ok(FrameStreamRequest {
        handle,
        filter: get_text("filter")?,
        instrument: get_text("instrument")?,
        session: get_text("session")?,
        tool: get_text("tool")?,
        resume,
    })
}
