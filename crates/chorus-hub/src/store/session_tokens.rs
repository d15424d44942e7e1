//! Session tokens: single-use credentials for opening a stream. They are stored as hashes and deleted by their use.

use super::{AgentId, DbConnection, DbError, SqlParam};
use chorus_wire::time::UnixMicros;

pub(crate) async fn insert_session_token(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
    principal: AgentId,
    expires: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into sessions (token_hash, principal, expires_at) values ($1, $2, $3)";
    tx.execute(
        SQL,
        &[
            SqlParam::Bytes(hash),
            SqlParam::id(principal),
            SqlParam::Int(expires.0),
        ],
    )
    .await
    .map(drop)
}

/// Revokes all tokens of an agent, because the key that they stand for was replaced or revoked.
pub(crate) async fn revoke_session_tokens(
    tx: &DbConnection<'_>,
    principal: AgentId,
) -> Result<(), DbError> {
    tx.execute(
        "delete from sessions where principal = $1",
        &[SqlParam::id(principal)],
    )
    .await
    .map(drop)
}

/// Deletes the token and returns its agent, if it had not expired. Of two requests with one token, only one finds it.
pub(crate) async fn redeem_session_token(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
    now: UnixMicros,
) -> Result<Option<AgentId>, DbError> {
    const SQL: &str = "delete from sessions where token_hash = $1 returning principal, expires_at";
    let Some(row) = tx.query_first(SQL, &[SqlParam::Bytes(hash)]).await? else {
        return Ok(None);
    };
    let mut columns = row.columns();
    let principal = columns.id()?;
    let expires_at = columns.int()?;
    Ok((expires_at > now.0).then_some(principal))
}
