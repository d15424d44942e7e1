//! Keeps the clock of a hub in step with the database's clock.

use super::{DbConnection, DbError, sql_dialect};
use crate::{Clock, limits};
use chorus_wire::time::UnixMicros;
use std::time::Duration;

/// Synchronises the clock with the database, which all hubs of a cluster follow (D-83). The answer is taken as the time at half
/// of the round trip; after a long round trip it is too inexact and is ignored.
pub(super) async fn sync_clock(
    clock: &Clock,
    tx: &DbConnection<'_>,
) -> std::result::Result<(), DbError> {
    let requested_at = clock.monotonic_now();
    if let Some(sql) = sql_dialect::now_sql(tx)
        && let Some(row) = tx.query_first(sql, &[]).await?
    {
        let now = estimate_now(
            UnixMicros(row.int(0)?),
            clock.monotonic_now().saturating_sub(requested_at),
        );
        now.into_iter().for_each(|now| clock.sync_to(now));
    }
    Ok(())
}

/// The current time, from the server's time and the duration of the round trip; `None` when that took too long.
pub(super) fn estimate_now(server_time: UnixMicros, round_trip: Duration) -> Option<UnixMicros> {
    (round_trip <= limits::CLOCK_SYNC_ROUND_TRIP_MAX)
        .then(|| server_time.saturating_add(round_trip / 2))
}
