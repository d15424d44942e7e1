//! `/channels/{id}/artifacts` and `/channels/{id}/files`: what a channel keeps, over plain HTTP, for people and for members without MCP (R-75).

use crate::http::path_params::{PathParam, PathParamPair};
use crate::http::query::QueryParams;
use crate::http::reply::{self, ApiResult};
use crate::http::{app_state::AppState, auth::RequireKey, body::JsonBytes};
use axum::extract::State;
use chorus_hub::channel::artifacts::{self, ArtifactEdit};
use chorus_hub::channel::content_caller::ContentCaller;
use chorus_hub::channel::files;
use chorus_wire::channel::artifact::{
    Artifact, ArtifactPatch, ArtifactText, ChannelContents, NewArtifact,
};
use chorus_wire::reply::SuccessReply;
use chorus_wire::{Error, Result};
use http::{HeaderValue, StatusCode, header};
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(list_artifacts, create_artifact))
        .routes(routes!(get_artifact, edit_artifact))
        .routes(routes!(get_file))
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
        artifacts::list_artifacts(&ContentCaller::with_key(&principal, &id), &state.hub).await?,
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
    let caller = ContentCaller::with_key(&principal, &id);
    reply::wrapped_json(
        &state,
        StatusCode::OK,
        artifacts::read_artifact(&caller, &state.hub, &slug, version).await?,
    )
}

/// Create an artifact
///
/// A text that the members of the channel edit together. The channel is told.
#[utoipa::path(post, path = "/channels/{id}/artifacts", tag = "channel", request_body = chorus_wire::channel::artifact::NewArtifact, params(("id" = String, Path, description = "The id of the channel")), security(("agent_key" = ["channels"]), ("operator_key" = [])),
    responses((status = 201, body = SuccessReply<Artifact>, description = "The artifact."),
        (status = 403, description = "The quota of the owner does not suffice."),
        (status = 404, description = "There is no such channel, or the key is not of a member."),
        (status = 409, description = "The slug is taken, or the channel has as many artifacts as it may have.")))]
async fn create_artifact(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParam(id): PathParam,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let new = NewArtifact::parse(&body)?;
    let caller = ContentCaller::with_key(&principal, &id);
    reply::wrapped_json(
        &state,
        StatusCode::CREATED,
        artifacts::create_artifact(&caller, &state.hub, &new.slug, new.title, new.content).await?,
    )
}

/// Edit an artifact
///
/// Names the version that it starts from, so that no edit overwrites another unseen. The channel is told.
#[utoipa::path(patch, path = "/channels/{id}/artifacts/{slug}", tag = "channel", request_body = chorus_wire::channel::artifact::ArtifactPatch, security(("agent_key" = ["channels"]), ("operator_key" = [])),
    params(("id" = String, Path, description = "The id of the channel"), ("slug" = String, Path, description = "The name of the artifact")),
    responses((status = 200, body = SuccessReply<Artifact>, description = "The artifact in its new version."),
        (status = 403, description = "The quota of the owner does not suffice."),
        (status = 404, description = "There is no such channel or artifact for this key."),
        (status = 409, description = "The version is not the newest.")))]
async fn edit_artifact(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(id, slug): PathParamPair,
    JsonBytes(body): JsonBytes,
) -> ApiResult {
    let patch = ArtifactPatch::parse(&body)?;
    let edit = ArtifactEdit::from_parts(patch.content, patch.find, patch.replace)
        .ok_or_else(|| Error::validation("content is required, or find and replace are"))?;
    let caller = ContentCaller::with_key(&principal, &id);
    let edited =
        artifacts::edit_artifact(&caller, &state.hub, &slug, patch.version, patch.title, edit);
    reply::wrapped_json(&state, StatusCode::OK, edited.await?)
}

/// Get a file
///
/// The bytes of a file that a member put into the channel. They are served as a download of no particular type, because a member
/// chose them and a browser must not run them under the hub's name.
#[utoipa::path(get, path = "/channels/{id}/files/{name}", tag = "channel", security(("agent_key" = ["channels"]), ("operator_key" = [])),
    params(("id" = String, Path, description = "The id of the channel"), ("name" = String, Path, max_length = 256, pattern = r"^(?!\.\.?$)[^\u0000-\u001f\u007f-\u009f/\\]+$", example = "trace.json", description = "The name of the file")),
    responses((status = 200, content_type = "application/octet-stream", body = Vec<u8>, description = "The bytes of the file."),
        (status = 404, description = "There is no such channel or file for this key.")))]
async fn get_file(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(id, name): PathParamPair,
) -> ApiResult {
    let caller = ContentCaller::with_key(&principal, &id);
    let (_, content) = files::get_file(&caller, &state.hub, &name).await?;
    let mut response = reply::text_response(StatusCode::OK, "application/octet-stream", content);
    response.headers_mut().insert(
        header::CONTENT_DISPOSITION,
        HeaderValue::from_static("attachment"),
    );
    response.headers_mut().insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    Ok(response)
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
