//! Single-use tokens that open one stream: stored hashed, spent by being deleted.

use super::{DbConnection, DbError, SqlParam};
use chorus_wire::time::UnixMicros;

pub(crate) async fn insert_session_token(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
    principal: i64,
    expires: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into sessions (token_hash, principal, expires_at) values ($1, $2, $3)";
    tx.execute(
        SQL,
        &[
            SqlParam::Bytes(hash),
            SqlParam::Int(principal),
            SqlParam::Int(expires.0),
        ],
    )
    .await
    .map(drop)
}

/// Ends every token of an agent: they speak for a key that is no longer its key.
pub(crate) async fn revoke_session_tokens(
    tx: &DbConnection<'_>,
    principal: i64,
) -> Result<(), DbError> {
    tx.execute(
        "delete from sessions where principal = $1",
        &[SqlParam::Int(principal)],
    )
    .await
    .map(drop)
}

/// Whose token it was, if it was there and in time. Two requests with one token: one of them deletes it.
pub(crate) async fn redeem_session_token(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
    now: UnixMicros,
) -> Result<Option<i64>, DbError> {
    const SQL: &str = "delete from sessions where token_hash = $1 returning principal, expires_at";
    match tx.query_first(SQL, &[SqlParam::Bytes(hash)]).await? {
        Some(row) if row.int(1)? > now.0 => Ok(Some(row.int(0)?)),
        Some(_) | None => Ok(None),
    }
}
