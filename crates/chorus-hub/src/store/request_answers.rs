//! The answers to requests with an `Idempotency-Key`, of all routes that have no such record of their own.

use super::{AgentId, DbConnection, DbError, IdempotencyKey, SqlParam};
use crate::clock_watch::ExpiryClock;
use chorus_wire::{limits, time::UnixMicros};
use std::time::Duration;

/// The request under which an answer is stored.
#[derive(Clone, Debug)]
pub(crate) struct RequestClaim {
    /// The caller and the path: a key of one caller or route says nothing about another's.
    pub caller: String,
    pub key: IdempotencyKey,
    /// A random text of this execution.
    pub execution: String,
    /// The agent whose quota the answer counts for.
    pub writer: Option<AgentId>,
    pub expires_at: UnixMicros,
    /// How long before `expires_at` a request of this caller and key was made.
    pub retention: Duration,
}

/// What is stored of a request that was carried out.
#[derive(Clone, Debug)]
pub(crate) struct StoredRequest {
    pub fingerprint: Vec<u8>,
    pub execution: String,
    /// What the answer is made of, sealed.
    pub kept: Option<Vec<u8>>,
    /// Sealed; `None` until the request has been answered.
    pub answer: Option<Vec<u8>>,
}

/// The request of this caller and key, unless its time is over.
pub(crate) async fn find_request(
    tx: &DbConnection<'_>,
    claim: &RequestClaim,
    clock: ExpiryClock,
) -> Result<Option<StoredRequest>, DbError> {
    const SQL: &str = "select fingerprint, execution, kept, answer, expires_at from request_answers
                       where caller = $1 and key = $2";
    let params = [
        SqlParam::Text(&claim.caller),
        SqlParam::Text(&claim.key.key),
    ];
    let Some(row) = tx.query_first(SQL, &params).await? else {
        return Ok(None);
    };
    let mut columns = row.columns();
    let found = StoredRequest {
        fingerprint: columns.maybe_bytes()?.unwrap_or_default(),
        execution: columns.text()?,
        kept: columns.maybe_bytes()?,
        answer: columns.maybe_bytes()?,
    };
    let expires_at = UnixMicros(columns.int()?);
    let is_over = clock.is_over(expires_at.saturating_sub(claim.retention), expires_at);
    Ok((!is_over).then_some(found))
}

/// Records that the request was carried out. A row of the same key whose time is over is replaced.
pub(crate) async fn insert_claim(
    tx: &DbConnection<'_>,
    claim: &RequestClaim,
    kept: Option<&[u8]>,
) -> Result<(), DbError> {
    forget_request(tx, &claim.caller, &claim.key.key).await?;
    const SQL: &str = "insert into request_answers
        (caller, key, fingerprint, execution, writer, kept, answer, octets, expires_at)
        values ($1, $2, $3, $4, $5, $6, null, $7, $8)";
    let octets = limits::STORED_ENTRY_BYTES as i64 + kept.map_or(0, <[u8]>::len) as i64;
    let params = [
        SqlParam::Text(&claim.caller),
        SqlParam::Text(&claim.key.key),
        SqlParam::Bytes(&claim.key.fingerprint),
        SqlParam::Text(&claim.execution),
        SqlParam::optional_id(claim.writer),
        SqlParam::optional_bytes(kept),
        SqlParam::Int(octets),
        SqlParam::Int(claim.expires_at.0),
    ];
    tx.execute(SQL, &params).await?;
    count_octets(tx, claim.writer, octets).await
}

/// Stores the answer of the execution that carried the request out. What it was made of is no longer needed.
pub(crate) async fn record_answer(
    tx: &DbConnection<'_>,
    claim: &RequestClaim,
    answer: &[u8],
) -> Result<(), DbError> {
    insert_claim(tx, claim, None).await?;
    const SQL: &str = "update request_answers set answer = $3, octets = octets + $4
                       where caller = $1 and key = $2";
    let octets = answer.len() as i64;
    let params = [
        SqlParam::Text(&claim.caller),
        SqlParam::Text(&claim.key.key),
        SqlParam::Bytes(answer),
        SqlParam::Int(octets),
    ];
    tx.execute(SQL, &params).await?;
    count_octets(tx, claim.writer, octets).await
}

async fn count_octets(
    tx: &DbConnection<'_>,
    writer: Option<AgentId>,
    octets: i64,
) -> Result<(), DbError> {
    let Some(writer) = writer else {
        return Ok(());
    };
    const SQL: &str = "insert into stored_bytes (writer, octets) values ($1, $2)
                       on conflict (writer) do update set octets = stored_bytes.octets + excluded.octets";
    tx.execute(SQL, &[SqlParam::id(writer), SqlParam::Int(octets)])
        .await
        .map(drop)
}

/// Forgets a request, so that it may be carried out again.
pub(crate) async fn forget_request(
    tx: &DbConnection<'_>,
    caller: &str,
    key: &str,
) -> Result<(), DbError> {
    const UNCOUNT: &str = "update stored_bytes set octets = octets -
            (select a.octets from request_answers a where a.caller = $1 and a.key = $2)
        where writer in (select a.writer from request_answers a where a.caller = $1 and a.key = $2)";
    const DELETE: &str = "delete from request_answers where caller = $1 and key = $2";
    let params = [SqlParam::Text(caller), SqlParam::Text(key)];
    tx.execute(UNCOUNT, &params).await?;
    tx.execute(DELETE, &params).await.map(drop)
}

/// Deletes requests whose time is over, `max` at most. Returns how many.
pub(super) async fn delete_expired_requests(
    tx: &DbConnection<'_>,
    now: UnixMicros,
    max: i64,
) -> Result<u64, DbError> {
    const UNCOUNT: &str = "
        update stored_bytes set octets = octets - coalesce(
            (select cast(sum(a.octets) as bigint) from
                (select writer, octets from request_answers where expires_at <= $1
                 order by expires_at, caller, key limit $2) a
             where a.writer = stored_bytes.writer), 0)
        where writer in (select writer from request_answers where expires_at <= $1 and writer is not null)";
    const DELETE: &str = "
        delete from request_answers where (caller, key) in
            (select caller, key from request_answers where expires_at <= $1
             order by expires_at, caller, key limit $2)";
    let params = [SqlParam::Int(now.0), SqlParam::Int(max)];
    tx.execute(UNCOUNT, &params).await?;
    tx.execute(DELETE, &params).await
}
