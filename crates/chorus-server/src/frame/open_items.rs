//! `/handles/{handle}/open`: the locks, decisions and handovers that stand under a handle.

use super::submit::SubmitterHeaders;
use crate::http::path_params::{PathParam, PathParamPair};
use crate::http::query::QueryParams;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey};
use axum::extract::State;
use chorus_hub::frame;
use chorus_wire::frame::{EndedItem, FrameCode, FrameError, OpenItems};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_open_items))
        .routes(routes!(take_handover))
        .routes(routes!(withdraw_item))
}

/// List what is open under a handle
///
/// Locks until they are released or their lease ends, decisions until they are answered or their time ends, and handovers until a
/// session takes them up, at most for a day; newest first. Under an agent's own handle it also lists what was said to its
/// organisations; each item names the handle that it stands under.
#[utoipa::path(get, path = "/handles/{handle}/open", tag = "frame", security(("agent_key" = ["frames"])),
    params(("handle" = String, Path, description = "The agent's own handle, that of its organisation, or one that granted it access"),
        ("after" = Option<String>, Query, description = "Continue here: `next` of the page before")),
    responses((status = 200, body = OpenItems, description = "The items; a page has at most 256 KiB."),
        (status = 403, description = "The handle has not granted access to this agent.")))]
async fn list_open_items(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(handle): PathParam,
    query: QueryParams,
) -> ApiResult {
    let after = query.get_single("after")?;
    reply::bare_json(
        StatusCode::OK,
        &frame::list_open_items(&principal, state.hub.frames(), &handle, after).await?,
    )
}

/// Take a handover up
///
/// The first session gets it, and gets the same reply when it asks again. Send a handover frame with `next_session_id` to tell the
/// other sessions.
#[utoipa::path(post, path = "/handles/{handle}/open/{frame_id}/take", tag = "frame", security(("agent_key" = ["frames"])),
    params(("handle" = String, Path, description = "The handle that the handover stands under: the agent's own, or that of its organisation"),
        ("frame_id" = String, Path, description = "The frame that handed the work over"),
        ("X-Chorus-Instrument" = Option<String>, Header, description = "The instrument of the session that takes it"),
        ("X-Chorus-Session" = String, Header, description = "The id of the session that takes it")),
    responses((status = 200, body = EndedItem, description = "The handover, which is now this session's."),
        (status = 403, description = "The handover was said to another handle."),
        (status = 404, description = "No such item is open under this handle."),
        (status = 409, description = "Another session has taken it up, its sender has withdrawn it, or it is no handover.")))]
async fn take_handover(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(handle, frame_id): PathParamPair,
    SubmitterHeaders(session): SubmitterHeaders,
) -> ApiResult {
    let Some(id) = session.session else {
        let message = "X-Chorus-Session must name the session that takes it up";
        return Err(
            FrameError::at_field(FrameCode::FieldMissing, "X-Chorus-Session", message).into(),
        );
    };
    let name = match session.instrument {
        Some(instrument) => format!("{instrument}@{id}"),
        None => id.to_string(),
    };
    reply::bare_json(
        StatusCode::OK,
        &frame::take_handover(&principal, state.hub.frames(), &handle, &frame_id, &name).await?,
    )
}

/// Withdraw what is open
///
/// The sender of a lock, a decision or a handover withdraws it. Doing so again changes nothing.
#[utoipa::path(delete, path = "/handles/{handle}/open/{frame_id}", tag = "frame", security(("agent_key" = ["frames"])),
    params(("handle" = String, Path, description = "The handle that it stands under"),
        ("frame_id" = String, Path, description = "The frame that opened it")),
    responses((status = 200, body = EndedItem, description = "It is no longer open."),
        (status = 403, description = "Another agent sent it."),
        (status = 404, description = "No such item is open under this handle."),
        (status = 409, description = "It has ended already: taken up, released or answered.")))]
async fn withdraw_item(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(handle, frame_id): PathParamPair,
) -> ApiResult {
    reply::bare_json(
        StatusCode::OK,
        &frame::withdraw_item(&principal, state.hub.frames(), &handle, &frame_id).await?,
    )
}
