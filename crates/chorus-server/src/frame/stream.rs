//! `GET /handles/{handle}/stream`: the live frames of a handle's sessions (FRM-62…82, R-42).

use crate::http::path_params::PathParam;
use crate::http::query::QueryParams;
use crate::http::resume::FrameResume;
use crate::http::{app_state::AppState, auth::AuthResult, reply::ApiResult, stream};
use axum::extract::State;
use chorus_hub::frame::{self, FrameStreamRequest};
use chorus_hub::identity;
use chorus_wire::Result;
use chorus_wire::cursor::ResumePoint;
use chorus_wire::frame::FrameError;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(stream_frames))
}

/// Stream the frames for my sessions
///
/// A stream of server-sent events that stays open. Each event is named by the kind of its frame. With `Last-Event-ID` it first
/// replays what is kept after that id; a `resume-gap` event says that some frames are gone.
#[utoipa::path(get, path = "/handles/{handle}/stream", tag = "frame", security(("agent_key" = ["frames"])),
    params(("handle" = String, Path, description = "The agent's own handle, such as ~alice"),
        ("filter" = Option<String>, Query, max_length = 1024, example = "kind:agent_advisory",
            description = "Clauses `axis:value` separated by commas, which must all match. The discovery document lists the axes"),
        ("instrument" = Option<String>, Query, min_length = 1, max_length = 128, description = "The program of this session; `unknown` by default"),
        ("session" = Option<String>, Query, min_length = 1, max_length = 128, description = "The id of this session; random by default"),
        ("tool" = Option<String>, Query, min_length = 1, max_length = 128, description = "The class of tool; the instrument up to its first `-` by default"),
        ("session_token" = Option<String>, Query, min_length = 1, description = "A token of POST /agent/session, in place of the key"),
        ("Last-Event-ID" = Option<String>, Header, example = "3-7", description = "The `id` of the last event that the client has")),
    responses((status = 200, content_type = "text/event-stream", body = String, description = "The events."),
        (status = 403, description = "The handle is of another agent.")))]
async fn stream_frames(
    State(state): State<AppState>,
    PathParam(handle): PathParam,
    query: QueryParams,
    FrameResume(resume): FrameResume,
    auth: AuthResult,
) -> ApiResult {
    let mut request = parse_stream_request(handle, &query, resume)?;
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
            let (principal, resume_token) =
                identity::open_session(state.hub.identity(), token).await?;
            auth.required_scope.check(&principal)?;
            request.resume_token = Some(resume_token);
            principal
        }
        None => auth.outcome?,
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
        resume_token: None,
    })
}
