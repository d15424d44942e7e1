//! The outbox: HTTP posts that must happen even after a crash. A row is inserted in the transaction that causes the post, leased
//! by one hub at a time, and kept until the post succeeds or is given up.

use super::{DbConnection, DbError, OutboxRowId, SqlParam, SqlRow};
use chorus_wire::time::UnixMicros;
use std::collections::HashSet;
use std::time::Duration;

/// A post to enqueue.
#[derive(Clone, Debug)]
pub(crate) struct NewOutboxRow<'a> {
    pub purpose: &'static str,
    /// The rows of one lane are posted in order.
    pub lane: &'a str,
    pub url: &'a str,
    pub body: &'a str,
    /// Whether it starts as a new row or among those that have failed.
    pub retry_class: RetryClass,
}

/// An outbox row that this hub has leased: no other hub posts it until the lease ends.
#[derive(Clone, Debug)]
pub(crate) struct OutboxRow {
    pub id: OutboxRowId,
    pub purpose: String,
    pub lane: String,
    pub url: String,
    pub body: String,
    pub created_at: UnixMicros,
    /// Failed attempts so far.
    pub attempts: i64,
    /// Identifies this lease: updates with an older value have no effect.
    pub lease_until: i64,
}

impl OutboxRow {
    /// After its end another hub may have leased the row.
    pub fn is_lease_expired(&self, now: UnixMicros) -> bool {
        now.0 >= self.lease_until
    }
}

pub(crate) async fn enqueue_post(
    tx: &DbConnection<'_>,
    new_row: &NewOutboxRow<'_>,
    now: UnixMicros,
) -> Result<(), DbError> {
    // Ids are never reused: a late update by an expired lease must not hit another row.
    const NEXT_ID: &str = "insert into settings (name, value) values ('outbox', 1)
                          on conflict (name) do update set value = settings.value + 1 returning value";
    let id = tx
        .query_first(NEXT_ID, &[])
        .await?
        .ok_or_else(|| DbError::Other("no number was given".into()))?
        .int(0)?;
    const SQL: &str = "insert into outbox (id, purpose, lane, url, headers, body, created_at, due_at, tries, leased)
                       values ($1, $2, $3, $4, '{}', $5, $6, $6, $7, 0)";
    let [attempts, _] = new_row.retry_class.attempt_range();
    let params = [
        SqlParam::Int(id),
        SqlParam::Text(new_row.purpose),
        SqlParam::Text(new_row.lane),
        SqlParam::Text(new_row.url),
        SqlParam::Text(new_row.body),
        SqlParam::Int(now.0),
        attempts,
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// Whether a row waits in this lane.
pub(crate) async fn has_lane_rows(tx: &DbConnection<'_>, lane: &str) -> Result<bool, DbError> {
    Ok(tx
        .query_first(
            "select 1 from outbox where lane = $1 limit 1",
            &[SqlParam::Text(lane)],
        )
        .await?
        .is_some())
}

/// The first row of each lane, if it is due, not leased, and has $3 to $4 failed attempts.
macro_rules! select_due {
    ($columns:literal) => {
        concat!(
            "select ",
            $columns,
            " from outbox o where o.due_at <= $1 and o.leased <= $1 and o.tries >= $3 and o.tries <= $4
              and not exists (select 1 from outbox p where p.lane = o.lane and p.id < o.id)
              order by o.due_at, o.id limit $2"
        )
    };
}

/// Which rows to lease: new ones, or those that have failed before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RetryClass {
    New,
    Failed,
}

impl RetryClass {
    fn attempt_range(self) -> [SqlParam<'static>; 2] {
        match self {
            Self::New => [SqlParam::Int(0), SqlParam::Int(0)],
            Self::Failed => [SqlParam::Int(1), SqlParam::Int(i64::MAX)],
        }
    }
}

/// The ids of due rows. A read connection runs this first, so that no write happens when nothing is due.
pub(crate) async fn list_due_row_ids(
    tx: &DbConnection<'_>,
    now: UnixMicros,
    retry_class: RetryClass,
    limit: usize,
) -> Result<Vec<OutboxRowId>, DbError> {
    let [min_attempts, max_attempts] = retry_class.attempt_range();
    let rows = tx
        .query(
            select_due!("o.id"),
            &[
                SqlParam::Int(now.0),
                SqlParam::Int(limit as i64),
                min_attempts,
                max_attempts,
            ],
        )
        .await?;
    rows.iter().map(|row| row.id(0)).collect()
}

/// Leases due rows, except those that this hub is posting now, even if their lease has expired by its clock.
pub(crate) async fn lease_due_rows(
    tx: &DbConnection<'_>,
    now: UnixMicros,
    lease_duration: Duration,
    retry_class: RetryClass,
    limit: usize,
    in_progress: &HashSet<OutboxRowId>,
) -> Result<Vec<OutboxRow>, DbError> {
    let [min_attempts, max_attempts] = retry_class.attempt_range();
    let scan_limit = SqlParam::Int((limit + in_progress.len()) as i64);
    let rows = tx
        .query(
            SELECT_DUE_ROWS,
            &[SqlParam::Int(now.0), scan_limit, min_attempts, max_attempts],
        )
        .await?;
    let lease_until = now.saturating_add(lease_duration).0;
    let mut leased = Vec::with_capacity(rows.len());
    for row in rows {
        let outbox_row = OutboxRow::from_row(row, lease_until)?;
        if in_progress.contains(&outbox_row.id) || leased.len() == limit {
            continue;
        }
        tx.execute(
            "update outbox set leased = $2 where id = $1",
            &[SqlParam::id(outbox_row.id), SqlParam::Int(lease_until)],
        )
        .await?;
        leased.push(outbox_row);
    }
    Ok(leased)
}

const SELECT_DUE_ROWS: &str =
    select_due!("o.id, o.purpose, o.lane, o.url, o.body, o.created_at, o.tries");

impl OutboxRow {
    /// Reads the columns of [`SELECT_DUE_ROWS`]; the lease is the one that the caller is about to store.
    fn from_row(row: SqlRow, lease_until: i64) -> Result<Self, DbError> {
        let mut columns = row.columns();
        let outbox_row = OutboxRow {
            id: columns.id()?,
            purpose: columns.text()?,
            lane: columns.text()?,
            url: columns.text()?,
            body: columns.text()?,
            created_at: UnixMicros(columns.int()?),
            attempts: columns.int()?,
            lease_until,
        };
        columns.finish();
        Ok(outbox_row)
    }
}

/// Clears all leases. Only for a hub that starts with the database to itself: the hub that held them has stopped.
pub(crate) async fn clear_leases(tx: &DbConnection<'_>) -> Result<(), DbError> {
    tx.execute("update outbox set leased = 0 where leased > 0", &[])
        .await
        .map(drop)
}

/// Whether the lease is still this hub's.
pub(crate) async fn is_still_leased(
    tx: &DbConnection<'_>,
    outbox_row: &OutboxRow,
) -> Result<bool, DbError> {
    const SQL: &str = "select 1 from outbox where id = $1 and leased = $2";
    Ok(tx
        .query_first(
            SQL,
            &[
                SqlParam::id(outbox_row.id),
                SqlParam::Int(outbox_row.lease_until),
            ],
        )
        .await?
        .is_some())
}

/// Deletes a row that was posted or given up; false when another hub has leased it meanwhile.
pub(crate) async fn delete_leased_row(
    tx: &DbConnection<'_>,
    outbox_row: &OutboxRow,
) -> Result<bool, DbError> {
    const SQL: &str = "delete from outbox where id = $1 and leased = $2";
    Ok(tx
        .execute(
            SQL,
            &[
                SqlParam::id(outbox_row.id),
                SqlParam::Int(outbox_row.lease_until),
            ],
        )
        .await?
        == 1)
}

/// Ends the lease of a row whose post failed; it is due again at `due_at`.
pub(crate) async fn reschedule_row(
    tx: &DbConnection<'_>,
    outbox_row: &OutboxRow,
    due_at: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "update outbox set due_at = $3, tries = tries + 1, leased = 0 where id = $1 and leased = $2";
    tx.execute(
        SQL,
        &[
            SqlParam::id(outbox_row.id),
            SqlParam::Int(outbox_row.lease_until),
            SqlParam::Int(due_at.0),
        ],
    )
    .await
    .map(drop)
}
