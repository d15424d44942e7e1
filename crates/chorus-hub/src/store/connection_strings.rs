//! Hashes of the connection strings of hosted agents, and which deliveries each agent has received.

use super::{AgentId, DbConnection, DbError, SqlParam};
use chorus_wire::time::UnixMicros;
use subtle::ConstantTimeEq;

/// Sets the agent's connection string and revokes the one before it (CHN-04).
pub(crate) async fn set_connection_string(
    tx: &DbConnection<'_>,
    agent: AgentId,
    hash: &[u8; 32],
    made_with: Option<&str>,
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "insert into connections (agent, hash, created_at, made_with) values ($1, $2, $3, $4)
                       on conflict (agent) do update set hash = excluded.hash, created_at = excluded.created_at,
                                                         made_with = excluded.made_with";
    tx.execute(
        SQL,
        &[
            SqlParam::id(agent),
            SqlParam::Bytes(hash),
            SqlParam::Int(now.0),
            SqlParam::optional_text(made_with),
        ],
    )
    .await
    .map(drop)
}

/// Revokes the agent's connection string if this key made it.
pub(crate) async fn revoke_string_made_with(
    tx: &DbConnection<'_>,
    agent: AgentId,
    made_with: Option<&str>,
) -> Result<(), DbError> {
    tx.execute(
        "delete from connections where agent = $1 and coalesce(made_with, '') = $2",
        &[
            SqlParam::id(agent),
            SqlParam::Text(made_with.unwrap_or_default()),
        ],
    )
    .await
    .map(drop)
}

/// The connection string of the registration's key is that of a further key from now on.
pub(crate) async fn retie_connection_string(
    tx: &DbConnection<'_>,
    agent: AgentId,
    made_with: &str,
) -> Result<(), DbError> {
    tx.execute(
        "update connections set made_with = $2 where agent = $1 and made_with is null",
        &[SqlParam::id(agent), SqlParam::Text(made_with)],
    )
    .await
    .map(drop)
}

/// Revokes the agent's connection string; false when there was none.
pub(crate) async fn revoke_connection_string(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<bool, DbError> {
    Ok(tx
        .execute(
            "delete from connections where agent = $1",
            &[SqlParam::id(agent)],
        )
        .await?
        > 0)
}

/// The agent whose connection string has this hash. A revoked one looks the same as one that never existed.
pub(crate) async fn find_agent_by_hash(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
    now: UnixMicros,
) -> Result<Option<AgentId>, DbError> {
    const SQL: &str =
        "select c.agent, c.hash from connections c left join agent_keys k on k.id = c.made_with
                       where c.hash = $1 and (k.expires_at is null or k.expires_at > $2)";
    let row = tx
        .query_first(SQL, &[SqlParam::Bytes(hash), SqlParam::Int(now.0)])
        .await?;
    let Some(row) = row else { return Ok(None) };
    let mut columns = row.columns();
    let agent = columns.id()?;
    let stored_hash = columns.maybe_bytes()?.unwrap_or_default();
    // the index found the row by equality; this comparison takes the same time wherever two hashes differ.
    let is_equal = bool::from(stored_hash.ct_eq(hash.as_slice()));
    Ok(is_equal.then_some(agent))
}

/// Records that the agent receives this delivery; false when it had received it before.
pub(crate) async fn record_first_delivery(
    tx: &DbConnection<'_>,
    agent: AgentId,
    pair: &[u8; 32],
    now: UnixMicros,
) -> Result<bool, DbError> {
    const SQL: &str = "insert into hosted (agent, pair, at) values ($1, $2, $3) on conflict (agent, pair) do nothing";
    Ok(tx
        .execute(
            SQL,
            &[
                SqlParam::id(agent),
                SqlParam::Bytes(pair),
                SqlParam::Int(now.0),
            ],
        )
        .await?
        == 1)
}

/// Deletes up to `limit` delivery records from before `until`. Returns how many.
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
