//! Connection strings of hosted agents, by their hashes, and which deliveries each agent has been given.

use super::{DbConnection, DbError, SqlParam};
use chorus_wire::time::UnixMicros;
use subtle::ConstantTimeEq;

/// The agent's one connection string; the one before it is dead with this (CHN-04).
pub(crate) async fn set_connection_string(
    tx: &DbConnection<'_>,
    agent: i64,
    hash: &[u8; 32],
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "insert into connections (agent, hash, created_at) values ($1, $2, $3)
                       on conflict (agent) do update set hash = excluded.hash, created_at = excluded.created_at";
    tx.execute(
        SQL,
        &[
            SqlParam::Int(agent),
            SqlParam::Bytes(hash),
            SqlParam::Int(now.0),
        ],
    )
    .await
    .map(drop)
}

/// True when there was one.
pub(crate) async fn revoke_connection_string(
    tx: &DbConnection<'_>,
    agent: i64,
) -> Result<bool, DbError> {
    Ok(tx
        .execute(
            "delete from connections where agent = $1",
            &[SqlParam::Int(agent)],
        )
        .await?
        > 0)
}

/// Whose connection string has this hash. One that is dead is as unknown as one that never was.
pub(crate) async fn find_agent_by_hash(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
) -> Result<Option<i64>, DbError> {
    let row = tx
        .query_first(
            "select agent, hash from connections where hash = $1",
            &[SqlParam::Bytes(hash)],
        )
        .await?;
    let Some(mut row) = row else { return Ok(None) };
    // the index found it by equality; this takes the same time wherever two hashes differ.
    let known = row.maybe_bytes(1)?.unwrap_or_default();
    if bool::from(known.ct_eq(hash.as_slice())) {
        row.int(0).map(Some)
    } else {
        Ok(None)
    }
}

/// Notes that the agent gets this one; false when it has had it.
pub(crate) async fn record_first_delivery(
    tx: &DbConnection<'_>,
    agent: i64,
    pair: &[u8; 32],
    now: UnixMicros,
) -> Result<bool, DbError> {
    const SQL: &str = "insert into hosted (agent, pair, at) values ($1, $2, $3) on conflict (agent, pair) do nothing";
    Ok(tx
        .execute(
            SQL,
            &[
                SqlParam::Int(agent),
                SqlParam::Bytes(pair),
                SqlParam::Int(now.0),
            ],
        )
        .await?
        == 1)
}

/// Forgets some of those from before `until`; how many there were.
pub(crate) async fn trim_delivery_records(
    tx: &DbConnection<'_>,
    until: UnixMicros,
    limit: i64,
) -> Result<u64, DbError> {
    const SQL: &str = "delete from hosted where (agent, pair) in (
                           select agent, pair from hosted where at <= $1 order by at limit $2)";
    tx.execute(SQL, &[SqlParam::Int(until.0), SqlParam::Int(limit)])
        .await
}
