//! Connection strings of hosted agents, by their hashes, and which deliveries each agent has been given.

use super::{DbError, Param, Tx};
use chorus_wire::time::Micros;
use subtle::ConstantTimeEq;

/// The agent's one connection string; the one before it is dead with this (CHN-04).
pub(crate) async fn put(
    tx: &Tx<'_>,
    agent: i64,
    hash: &[u8; 32],
    now: Micros,
) -> Result<(), DbError> {
    const SQL: &str = "insert into connections (agent, hash, created_at) values ($1, $2, $3)
                       on conflict (agent) do update set hash = excluded.hash, created_at = excluded.created_at";
    tx.execute(
        SQL,
        &[Param::Int(agent), Param::Bytes(hash), Param::Int(now.0)],
    )
    .await
    .map(drop)
}

/// True when there was one.
pub(crate) async fn revoke(tx: &Tx<'_>, agent: i64) -> Result<bool, DbError> {
    Ok(tx
        .execute(
            "delete from connections where agent = $1",
            &[Param::Int(agent)],
        )
        .await?
        > 0)
}

/// Whose connection string has this hash. One that is dead is as unknown as one that never was.
pub(crate) async fn whose(tx: &Tx<'_>, hash: &[u8; 32]) -> Result<Option<i64>, DbError> {
    let row = tx
        .one(
            "select agent, hash from connections where hash = $1",
            &[Param::Bytes(hash)],
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
pub(crate) async fn first(
    tx: &Tx<'_>,
    agent: i64,
    pair: &[u8; 32],
    now: Micros,
) -> Result<bool, DbError> {
    const SQL: &str = "insert into hosted (agent, pair, at) values ($1, $2, $3) on conflict (agent, pair) do nothing";
    Ok(tx
        .execute(
            SQL,
            &[Param::Int(agent), Param::Bytes(pair), Param::Int(now.0)],
        )
        .await?
        == 1)
}

/// Forgets some of those from before `until`; how many there were.
pub(crate) async fn trim(tx: &Tx<'_>, until: Micros, most: i64) -> Result<u64, DbError> {
    const SQL: &str = "delete from hosted where (agent, pair) in (
                           select agent, pair from hosted where at <= $1 order by at limit $2)";
    tx.execute(SQL, &[Param::Int(until.0), Param::Int(most)])
        .await
}
