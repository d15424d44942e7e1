//! `/channels/{id}/artifacts`: a channel's artifacts over plain HTTP, for members without MCP.

use crate::http::path_params::{PathParam, PathParamPair};
use crate::http::query::QueryParams;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey};
use axum::extract::State;
use chorus_hub::channel::artifacts;
use chorus_wire::channel::artifact::{ArtifactText, ChannelContents};
use chorus_wire::reply::SuccessReply;
use chorus_wire::{Error, Result};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_artifacts))
        .routes(routes!(get_artifact))
}

/// List the artifacts and files of a channel
///
/// Without their contents.
#[utoipa::path(get, path = "/channels/{id}/artifacts", tag = "channel", params(("id" = String, Path, description = "The id of the channel")), security(("agent_key" = ["channels"]), ("operator_key" = [])),
    responses((status = 200, body = SuccessReply<ChannelContents>, description = "The artifacts and files."),
        (status = 404, description = "There is no such channel, or the key is not of a member.")))]
async fn list_artifacts(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        artifacts::list_channel_artifacts(&principal, &state.hub, &id).await?,
    )
}

/// Get an artifact
///
/// The text of an artifact, in its newest or an older version.
#[utoipa::path(get, path = "/channels/{id}/artifacts/{slug}", tag = "channel", security(("agent_key" = ["channels"]), ("operator_key" = [])),
    params(("id" = String, Path, description = "The id of the channel"), ("slug" = String, Path, description = "The name of the artifact"),
        ("version" = Option<u64>, Query, minimum = 1, description = "An older version; the newest by default")),
    responses((status = 200, body = SuccessReply<ArtifactText>, description = "The artifact."),
        (status = 404, description = "There is no such channel, artifact or version for this key.")))]
async fn get_artifact(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(id, slug): PathParamPair,
    query: QueryParams,
) -> ApiResult {
    let version = parse_version(&query)?;
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        artifacts::read_channel_artifact(&principal, &state.hub, &id, &slug, version).await?,
    )
}

fn parse_version(query: &QueryParams) -> Result<Option<u64>> {
    let version_error = || Error::validation("version must be a whole number of at least 1");
    let Some(text) = query.get_single("version")? else {
        return Ok(None);
    };
    text.parse()
        .ok()
        .filter(|version| *version >= 1)
        .map(Some)
        .ok_or_else(version_error)
}
