//! `/channels/{id}/artifacts`: what a room has written down, for those who are in it without tools.

use crate::query::{Pair, Query, Segment};
use crate::reply::{self, Answer};
use crate::{auth::Known, doors::Doors};
use axum::extract::State;
use chorus_hub::channel::artifacts;
use chorus_wire::channel::artifact::{ArtifactText, Shelf};
use chorus_wire::reply::{Failure, Success};
use chorus_wire::{Error, Result};
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(shelf))
        .routes(routes!(text))
}

/// The texts and files of a channel, without what is in them
#[utoipa::path(get, path = "/channels/{id}/artifacts", tag = "channel", params(("id" = String, Path)),
    security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 200, body = Success<Shelf>), (status = 401, body = Failure), (status = 404, body = Failure)))]
async fn shelf(State(doors): State<Doors>, Known(who): Known, Segment(id): Segment) -> Answer {
    reply::wrapped(
        &doors,
        StatusCode::OK,
        artifacts::shelf(&who, &doors.hub, &id).await?,
    )
}

/// One text of a channel
#[utoipa::path(get, path = "/channels/{id}/artifacts/{slug}", tag = "channel",
    security(("agent_key" = []), ("operator_key" = [])),
    params(("id" = String, Path), ("slug" = String, Path),
        ("version" = Option<u64>, Query, description = "An older version; the newest without it")),
    responses((status = 200, body = Success<ArtifactText>), (status = 401, body = Failure), (status = 404, body = Failure)))]
async fn text(
    State(doors): State<Doors>,
    Known(who): Known,
    Pair(id, slug): Pair,
    query: Query,
) -> Answer {
    let version = version(&query)?;
    reply::wrapped(
        &doors,
        StatusCode::OK,
        artifacts::show(&who, &doors.hub, &id, &slug, version).await?,
    )
}

fn version(query: &Query) -> Result<Option<u64>> {
    let wrong = || Error::validation("version must be a whole number of at least 1");
    let Some(text) = query.one("version")? else {
        return Ok(None);
    };
    text.parse()
        .ok()
        .filter(|version| *version >= 1)
        .map(Some)
        .ok_or_else(wrong)
}
