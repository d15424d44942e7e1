//! Session tokens: single-use credentials for opening a stream. They are stored as hashes and deleted by their use.

use super::{AgentId, DbConnection, DbError, SqlParam};
use chorus_wire::time::UnixMicros;

pub(crate) async fn insert_session_token(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
    principal: AgentId,
    made_with: Option<&str>,
    expires: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "insert into sessions (token_hash, principal, expires_at, made_with) values ($1, $2, $3, $4)";
    tx.execute(
        SQL,
        &[
            SqlParam::Bytes(hash),
            SqlParam::id(principal),
            SqlParam::Int(expires.0),
            SqlParam::optional_text(made_with),
        ],
    )
    .await
    .map(drop)
}

/// Revokes the tokens that a key of the agent made, because it was replaced or revoked.
pub(crate) async fn revoke_session_tokens(
    tx: &DbConnection<'_>,
    principal: AgentId,
    made_with: Option<&str>,
) -> Result<(), DbError> {
    tx.execute(
        "delete from sessions where principal = $1 and coalesce(made_with, '') = $2",
        &[
            SqlParam::id(principal),
            SqlParam::Text(made_with.unwrap_or_default()),
        ],
    )
    .await
    .map(drop)
}

/// Revokes all tokens of an agent that is unregistered.
pub(crate) async fn revoke_all_session_tokens(
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

/// The tokens of the registration's key are those of a further key from now on.
pub(crate) async fn retie_session_tokens(
    tx: &DbConnection<'_>,
    principal: AgentId,
    made_with: &str,
) -> Result<(), DbError> {
    tx.execute(
        "update sessions set made_with = $2 where principal = $1 and made_with is null",
        &[SqlParam::id(principal), SqlParam::Text(made_with)],
    )
    .await
    .map(drop)
}

/// What a console session of an operator has in place of an agent: operators are in the configuration, not in the store. Ids
/// of agents begin with 1.
pub(crate) const NO_AGENT: AgentId = AgentId(0);

/// The agent of a session token and the further key that made it.
#[derive(Clone, Debug)]
pub(crate) struct RedeemedToken {
    pub principal: AgentId,
    pub made_with: Option<String>,
}

/// Deletes the token and returns what it stands for, if it had not expired. Of two requests with one token, only one finds it.
pub(crate) async fn redeem_session_token(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
    now: UnixMicros,
) -> Result<Option<RedeemedToken>, DbError> {
    const SQL: &str =
        "delete from sessions where token_hash = $1 returning principal, expires_at, made_with";
    read_token(tx, SQL, hash, now).await
}

/// What the token stands for, if it has not expired. The token stays.
pub(crate) async fn find_session_token(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
    now: UnixMicros,
) -> Result<Option<RedeemedToken>, DbError> {
    const SQL: &str = "select principal, expires_at, made_with from sessions where token_hash = $1";
    read_token(tx, SQL, hash, now).await
}

async fn read_token(
    tx: &DbConnection<'_>,
    sql: &'static str,
    hash: &[u8; 32],
    now: UnixMicros,
) -> Result<Option<RedeemedToken>, DbError> {
    let Some(row) = tx.query_first(sql, &[SqlParam::Bytes(hash)]).await? else {
        return Ok(None);
    };
    let mut columns = row.columns();
    let principal = columns.id()?;
    let expires_at = columns.int()?;
    let made_with = columns.maybe_text()?;
    Ok((expires_at > now.0).then_some(RedeemedToken {
        principal,
        made_with,
    }))
}
