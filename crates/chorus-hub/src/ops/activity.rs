//! Activity for operators: as pages and as a stream.

use crate::context::HubContext;
use crate::delivery::{StreamFeed, open_activity_feed, render};
use crate::store::log;
use crate::{Principal, Result};
use chorus_wire::cursor::HistoryStart;
use chorus_wire::reply::ActivityRow;
use chorus_wire::{ErrorCode, limits};
use serde_json::json;

/// `GET /activity?since=`
pub async fn list_activity(
    principal: &Principal,
    hub: &HubContext,
    since: u64,
    limit: usize,
) -> Result<Vec<ActivityRow>> {
    principal.require_operator()?;
    let limit = limit.clamp(1, limits::ACTIVITY_PAGE);
    // The entry of `since` may have a second row after it.
    let after = render::seq_of_activity(since).previous();
    let page = hub
        .store()
        .read(async move |tx| Ok(log::list_operator_entries(tx, after, limit).await?))
        .await?;
    let salt = hub.store().trace_salt;
    let rows = page
        .entries
        .iter()
        .flat_map(|entry| render::activity_rows(entry, salt));
    Ok(rows.filter(|row| row.id > since).take(limit).collect())
}

/// `GET /events`: the same rows, live.
pub async fn open_activity_stream(
    principal: &Principal,
    hub: &HubContext,
    since: Option<HistoryStart>,
) -> Result<StreamFeed> {
    principal.require_operator()?;
    let connected = json!({"timestamp": hub.clock().now()}).to_string();
    let credentials = principal.credential_hashes();
    let feed = open_activity_feed(hub.delivery(), credentials, since, &connected).await?;
    // A page that signed out before the subscription ended the streams that were open then, but not this one.
    match hub
        .identity()
        .is_open_session(credentials.console_session)
        .await?
    {
        true => Ok(feed),
        false => Err(ErrorCode::Unauthorized.into()),
    }
}
