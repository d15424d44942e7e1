//! The outbox: HTTP posts that must happen even after a crash. A row is inserted in the transaction that causes the post, leased
//! by one hub at a time, and kept until the post succeeds or is given up.

use super::{DbConnection, DbError, OutboxRowId, OwnerId, SqlParam, SqlRow};
use crate::limits;
use crate::telemetry::SpanContext;
use chorus_wire::time::UnixMicros;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// A post to enqueue.
#[derive(Clone, Debug)]
pub(crate) struct NewOutboxRow<'a> {
    pub purpose: &'static str,
    /// The rows of one lane are posted in order.
    pub lane: &'a str,
    /// Whose share of the posts it uses; `None` for what the operators own.
    pub owner: Option<OwnerId>,
    pub url: &'a str,
    pub body: &'a str,
    /// Whether it starts as a new row or among those that have failed.
    pub retry_class: RetryClass,
    /// The span of the request that caused it.
    pub span_context: Option<SpanContext>,
}

/// An outbox row that this hub has leased: no other hub posts it until the lease ends.
#[derive(Clone, Debug)]
pub(crate) struct OutboxRow {
    pub id: OutboxRowId,
    pub purpose: String,
    pub lane: String,
    pub owner: OwnerId,
    pub url: String,
    pub body: String,
    pub created_at: UnixMicros,
    /// Failed attempts so far.
    pub attempts: i64,
    /// Identifies this lease: updates with an older value have no effect.
    pub lease_until: i64,
    /// The span of the request that caused it.
    pub span_context: Option<SpanContext>,
}

impl OutboxRow {
    /// After its end another hub may have leased the row.
    pub fn is_lease_expired(&self, now: UnixMicros) -> bool {
        now.0 >= self.lease_until
    }
}

/// The one header that the column `headers` has: all others are made for each attempt.
const TRACEPARENT: &str = "traceparent";

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
    const SQL: &str = "insert into outbox (id, purpose, lane, url, headers, body, created_at, due_at, tries, leased, owner)
                       values ($1, $2, $3, $4, $9, $5, $6, $6, $7, 0, $8)";
    let [attempts, _] = new_row.retry_class.attempt_range();
    let headers = match new_row.span_context {
        Some(context) => Cow::Owned(json!({ TRACEPARENT: context.to_string() }).to_string()),
        None => Cow::Borrowed("{}"),
    };
    let params = [
        SqlParam::Int(id),
        SqlParam::Text(new_row.purpose),
        SqlParam::Text(new_row.lane),
        SqlParam::Text(new_row.url),
        SqlParam::Text(new_row.body),
        SqlParam::Int(now.0),
        attempts,
        SqlParam::id(new_row.owner.unwrap_or(OPERATORS)),
        SqlParam::Text(&headers),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// Rows that wait, counted up to `max`: a scrape must not read a table of millions.
pub(crate) async fn count_pending(tx: &DbConnection<'_>, max: i64) -> Result<i64, DbError> {
    const SQL: &str = "select count(*) from (select 1 from outbox limit $1) as pending";
    match tx.query_first(SQL, &[SqlParam::Int(max)]).await? {
        Some(row) => row.int(0),
        None => Ok(0),
    }
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

/// The owner of posts for channels of the operators, and of rows from before there were owners.
const OPERATORS: OwnerId = OwnerId(0);
/// Stands for no owner in a list of excluded ones.
const NO_OWNER: OwnerId = OwnerId(-1);

/// The posts in flight, which decide what may be leased.
#[derive(Clone, Debug, Default)]
pub(crate) struct PostsInFlight {
    rows: HashSet<OutboxRowId>,
    per_owner: HashMap<OwnerId, OwnerPosts>,
}

/// How many posts of one owner are in flight.
#[derive(Clone, Copy, Debug, Default)]
struct OwnerPosts {
    all: usize,
    failed_before: usize,
}

impl PostsInFlight {
    pub fn add_post(&mut self, row_id: OutboxRowId, owner: OwnerId, has_failed_before: bool) {
        self.rows.insert(row_id);
        let posts = self.per_owner.entry(owner).or_default();
        posts.all += 1;
        posts.failed_before += usize::from(has_failed_before);
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn contains(&self, row_id: OutboxRowId) -> bool {
        self.rows.contains(&row_id)
    }

    /// As with all posts (D-41), half of an owner's share is kept for rows that have not failed.
    fn has_full_share(&self, owner: OwnerId, retry_class: RetryClass) -> bool {
        let posts = self.per_owner.get(&owner).copied().unwrap_or_default();
        let share = limits::OUTBOX_PER_OWNER;
        match retry_class {
            RetryClass::New => posts.all >= share,
            RetryClass::Failed => posts.all >= share || posts.failed_before >= share / 2,
        }
    }

    /// The owners whose rows are not looked at: there can be no more than fill all slots.
    fn excluded_owners(&self, retry_class: RetryClass) -> [SqlParam<'static>; FULL_SHARES] {
        let owners = self.per_owner.keys().copied();
        let mut full = owners.filter(|owner| self.has_full_share(*owner, retry_class));
        std::array::from_fn(|_| SqlParam::id(full.next().unwrap_or(NO_OWNER)))
    }
}

/// How many owners can have a full share, or a full half of it, at once.
const FULL_SHARES: usize = limits::OUTBOX_IN_FLIGHT / (limits::OUTBOX_PER_OWNER / 2);
const _: () = assert!(
    FULL_SHARES == 16,
    "the query below has sixteen parameters for them"
);

/// The first row of each lane, if it is due, not leased, has $3 to $4 failed attempts, and is of no owner of $5 to $20.
macro_rules! select_due {
    ($columns:literal) => {
        concat!(
            "select ",
            $columns,
            " from outbox o where o.due_at <= $1 and o.leased <= $1 and o.tries >= $3 and o.tries <= $4
              and o.owner not in ($5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
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
    in_flight: &PostsInFlight,
) -> Result<Vec<OutboxRowId>, DbError> {
    let params = due_params(now, limit, retry_class, in_flight);
    let rows = tx.query(select_due!("o.id"), &params).await?;
    rows.iter().map(|row| row.id(0)).collect()
}

fn due_params(
    now: UnixMicros,
    limit: usize,
    retry_class: RetryClass,
    in_flight: &PostsInFlight,
) -> Vec<SqlParam<'static>> {
    let mut params = vec![SqlParam::Int(now.0), SqlParam::Int(limit as i64)];
    params.extend(retry_class.attempt_range());
    params.extend(in_flight.excluded_owners(retry_class));
    params
}

/// The rows that were leased.
pub(crate) struct LeasedRows {
    pub rows: Vec<OutboxRow>,
    /// Rows were left because the share of their owner is full; rows of others may be behind them.
    pub reached_share: bool,
}

/// Leases due rows, except those that this hub is posting now, even if their lease has expired by its clock, and those beyond
/// the share of their owner.
pub(crate) async fn lease_due_rows(
    tx: &DbConnection<'_>,
    now: UnixMicros,
    lease_duration: Duration,
    retry_class: RetryClass,
    limit: usize,
    mut in_flight: PostsInFlight,
) -> Result<LeasedRows, DbError> {
    let scan_limit = limit + in_flight.len();
    let params = due_params(now, scan_limit, retry_class, &in_flight);
    let found = tx.query(SELECT_DUE_ROWS, &params).await?;
    let lease_until = now.saturating_add(lease_duration).0;
    let mut leased = LeasedRows {
        rows: Vec::with_capacity(found.len()),
        reached_share: false,
    };
    for row in found {
        let outbox_row = OutboxRow::from_row(row, lease_until)?;
        if in_flight.contains(outbox_row.id) || leased.rows.len() == limit {
            continue;
        }
        if in_flight.has_full_share(outbox_row.owner, retry_class) {
            leased.reached_share = true;
            continue;
        }
        tx.execute(
            "update outbox set leased = $2 where id = $1",
            &[SqlParam::id(outbox_row.id), SqlParam::Int(lease_until)],
        )
        .await?;
        in_flight.add_post(outbox_row.id, outbox_row.owner, outbox_row.attempts > 0);
        leased.rows.push(outbox_row);
    }
    Ok(leased)
}

const SELECT_DUE_ROWS: &str = select_due!(
    "o.id, o.purpose, o.lane, o.owner, o.url, o.body, o.created_at, o.tries, o.headers"
);

impl OutboxRow {
    /// Reads the columns of [`SELECT_DUE_ROWS`]; the lease is the one that the caller is about to store.
    fn from_row(row: SqlRow, lease_until: i64) -> Result<Self, DbError> {
        let mut columns = row.columns();
        let outbox_row = OutboxRow {
            id: columns.id()?,
            purpose: columns.text()?,
            lane: columns.text()?,
            owner: columns.id()?,
            url: columns.text()?,
            body: columns.text()?,
            created_at: UnixMicros(columns.int()?),
            attempts: columns.int()?,
            lease_until,
            span_context: parse_span_context(&columns.text()?),
        };
        columns.finish();
        Ok(outbox_row)
    }
}

fn parse_span_context(headers: &str) -> Option<SpanContext> {
    let headers: Value = serde_json::from_str(headers).ok()?;
    SpanContext::parse(headers.get(TRACEPARENT)?.as_str()?)
}

/// Makes rows due that were put off by more than a pause between two attempts: a clock that was ahead has set their time, and it
/// has been set back since (D-123).
pub(crate) async fn resume_rows_of_future(
    tx: &DbConnection<'_>,
    now: UnixMicros,
) -> Result<(), DbError> {
    let latest = now.saturating_add(limits::OUTBOX_BACKOFF_MAX);
    tx.execute(
        "update outbox set due_at = $1 where due_at > $2",
        &[SqlParam::Int(now.0), SqlParam::Int(latest.0)],
    )
    .await
    .map(drop)
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
