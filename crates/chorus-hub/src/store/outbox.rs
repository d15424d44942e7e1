//! POSTs that are owed to others: written in the transaction that owes them, taken by lease, kept until they are done.

use super::{DbConnection, DbError, SqlParam, SqlRow};
use chorus_wire::time::UnixMicros;
use std::collections::HashSet;
use std::time::Duration;

/// A POST that is to be made.
#[derive(Clone, Debug)]
pub(crate) struct NewOutboxRow<'a> {
    pub purpose: &'static str,
    /// What shares a lane goes out in order.
    pub lane: &'a str,
    pub url: &'a str,
    pub body: &'a str,
    /// With whom it waits.
    pub retry_class: RetryClass,
}

/// One that was taken: nobody else has it until its lease ends.
#[derive(Clone, Debug)]
pub(crate) struct OutboxRow {
    pub id: i64,
    pub purpose: String,
    pub lane: String,
    pub url: String,
    pub body: String,
    pub created_at: UnixMicros,
    /// Failures so far.
    pub attempts: i64,
    /// Names this taking: whoever comes back with an older one is too late.
    pub lease_until: i64,
}

impl OutboxRow {
    /// Its time is over: somebody else may have it by now.
    pub fn is_lease_expired(&self, now: UnixMicros) -> bool {
        now.0 >= self.lease_until
    }
}

pub(crate) async fn enqueue_post(
    tx: &DbConnection<'_>,
    new_row: &NewOutboxRow<'_>,
    now: UnixMicros,
) -> Result<(), DbError> {
    // Never a number that was used before: a late answer must not find another row under its own.
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

/// Whether something waits in this lane.
pub(crate) async fn has_lane_rows(tx: &DbConnection<'_>, lane: &str) -> Result<bool, DbError> {
    Ok(tx
        .query_first(
            "select 1 from outbox where lane = $1 limit 1",
            &[SqlParam::Text(lane)],
        )
        .await?
        .is_some())
}

/// Of each lane its first, due and not taken, with a number of failures from $3 to $4.
macro_rules! due {
    ($what:literal) => {
        concat!(
            "select ",
            $what,
            " from outbox o where o.due_at <= $1 and o.leased <= $1 and o.tries >= $3 and o.tries <= $4
              and not exists (select 1 from outbox p where p.lane = o.lane and p.id < o.id)
              order by o.due_at, o.id limit $2"
        )
    };
}

/// Which rows may be taken: the new ones, or those that have failed before.
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

/// What can be had, at least `most` of it if there is as much: asked of a reader, so that nothing is written when nothing is due.
pub(crate) async fn list_due_row_ids(
    tx: &DbConnection<'_>,
    now: UnixMicros,
    retry_class: RetryClass,
    limit: usize,
) -> Result<Vec<i64>, DbError> {
    let [min_attempts, max_attempts] = retry_class.attempt_range();
    let rows = tx
        .query(
            due!("o.id"),
            &[
                SqlParam::Int(now.0),
                SqlParam::Int(limit as i64),
                min_attempts,
                max_attempts,
            ],
        )
        .await?;
    rows.iter().map(|row| row.int(0)).collect()
}

/// Takes what is due but for those that this hub is at already, whatever its clock says of their lease.
pub(crate) async fn lease_due_rows(
    tx: &DbConnection<'_>,
    now: UnixMicros,
    lease_duration: Duration,
    retry_class: RetryClass,
    limit: usize,
    in_progress: &HashSet<i64>,
) -> Result<Vec<OutboxRow>, DbError> {
    const DUE: &str = due!("o.id, o.purpose, o.lane, o.url, o.body, o.created_at, o.tries");
    let [min_attempts, max_attempts] = retry_class.attempt_range();
    let scan_limit = SqlParam::Int((limit + in_progress.len()) as i64);
    let rows = tx
        .query(
            DUE,
            &[SqlParam::Int(now.0), scan_limit, min_attempts, max_attempts],
        )
        .await?;
    let lease_until = now.saturating_add(lease_duration).0;
    let mut leased = Vec::with_capacity(rows.len());
    for row in rows {
        let outbox_row = read_outbox_row(row, lease_until)?;
        if in_progress.contains(&outbox_row.id) || leased.len() == limit {
            continue;
        }
        tx.execute(
            "update outbox set leased = $2 where id = $1",
            &[SqlParam::Int(outbox_row.id), SqlParam::Int(lease_until)],
        )
        .await?;
        leased.push(outbox_row);
    }
    Ok(leased)
}

fn read_outbox_row(mut row: SqlRow, lease_until: i64) -> Result<OutboxRow, DbError> {
    Ok(OutboxRow {
        id: row.int(0)?,
        purpose: row.text(1)?,
        lane: row.text(2)?,
        url: row.text(3)?,
        body: row.text(4)?,
        created_at: UnixMicros(row.int(5)?),
        attempts: row.int(6)?,
        lease_until,
    })
}

/// Nobody is at any of them: for a hub that starts alone, and knows that whoever took them is gone.
pub(crate) async fn clear_leases(tx: &DbConnection<'_>) -> Result<(), DbError> {
    tx.execute("update outbox set leased = 0 where leased > 0", &[])
        .await
        .map(drop)
}

/// Whether it is still this taking's.
pub(crate) async fn is_still_leased(
    tx: &DbConnection<'_>,
    outbox_row: &OutboxRow,
) -> Result<bool, DbError> {
    const SQL: &str = "select 1 from outbox where id = $1 and leased = $2";
    Ok(tx
        .query_first(
            SQL,
            &[
                SqlParam::Int(outbox_row.id),
                SqlParam::Int(outbox_row.lease_until),
            ],
        )
        .await?
        .is_some())
}

/// It is done, or given up; false when somebody else has it by now.
pub(crate) async fn delete_leased_row(
    tx: &DbConnection<'_>,
    outbox_row: &OutboxRow,
) -> Result<bool, DbError> {
    const SQL: &str = "delete from outbox where id = $1 and leased = $2";
    Ok(tx
        .execute(
            SQL,
            &[
                SqlParam::Int(outbox_row.id),
                SqlParam::Int(outbox_row.lease_until),
            ],
        )
        .await?
        == 1)
}

/// It failed and is due again later.
pub(crate) async fn reschedule_row(
    tx: &DbConnection<'_>,
    outbox_row: &OutboxRow,
    due_at: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "update outbox set due_at = $3, tries = tries + 1, leased = 0 where id = $1 and leased = $2";
    tx.execute(
        SQL,
        &[
            SqlParam::Int(outbox_row.id),
            SqlParam::Int(outbox_row.lease_until),
            SqlParam::Int(due_at.0),
        ],
    )
    .await
    .map(drop)
}
