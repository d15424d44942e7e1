//! Session tokens: single-use credentials for opening a stream. They are stored as hashes and deleted by their use.

use super::{AgentId, DbConnection, DbError, SqlParam};
use chorus_wire::time::UnixMicros;
use subtle::ConstantTimeEq;

/// A token to store.
pub(crate) struct NewSessionToken<'a> {
    pub hash: [u8; 32],
    pub principal: AgentId,
    /// The further key that made it; `None` for the key of the registration.
    pub made_with: Option<&'a str>,
    /// The console session that it is, or that it was made in.
    pub console_session: Option<[u8; 32]>,
    pub expires_at: UnixMicros,
}

pub(crate) async fn insert_session_token(
    tx: &DbConnection<'_>,
    token: NewSessionToken<'_>,
) -> Result<(), DbError> {
    const SQL: &str = "insert into sessions (token_hash, principal, expires_at, made_with, console_session) values ($1, $2, $3, $4, $5)";
    let console_session = token.console_session.as_ref();
    tx.execute(
        SQL,
        &[
            SqlParam::Bytes(&token.hash),
            SqlParam::id(token.principal),
            SqlParam::Int(token.expires_at.0),
            SqlParam::optional_text(token.made_with),
            SqlParam::optional_bytes(console_session.map(|hash| &hash[..])),
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

/// The agent of a session token, the further key that made it, and its console session.
#[derive(Clone, Debug)]
pub(crate) struct RedeemedToken {
    pub principal: AgentId,
    pub made_with: Option<String>,
    pub console_session: Option<[u8; 32]>,
}

/// Deletes the token and returns what it stands for, if it had not expired. Of two requests with one token, only one finds it.
pub(crate) async fn redeem_session_token(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
    now: UnixMicros,
) -> Result<Option<RedeemedToken>, DbError> {
    const SQL: &str = "delete from sessions where token_hash = $1 returning principal, expires_at, made_with, console_session, token_hash";
    read_token(tx, SQL, hash, now).await
}

/// What the token stands for, if it has not expired. The token stays.
pub(crate) async fn find_session_token(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
    now: UnixMicros,
) -> Result<Option<RedeemedToken>, DbError> {
    const SQL: &str = "select principal, expires_at, made_with, console_session, token_hash from sessions where token_hash = $1";
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
    let console_session = columns.maybe_bytes()?.and_then(|hash| hash.try_into().ok());
    let stored_hash = columns.maybe_bytes()?.unwrap_or_default();
    columns.finish();
    // the index found the row by equality; this comparison takes the same time wherever two hashes differ.
    let is_equal = bool::from(stored_hash.ct_eq(hash.as_slice()));
    Ok((is_equal && expires_at > now.0).then_some(RedeemedToken {
        principal,
        made_with,
        console_session,
    }))
}

/// A console session that is to end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConsoleSessionRow {
    pub hash: [u8; 32],
    pub principal: AgentId,
}

/// Deletes a console session with the tokens that were made in it. Returns whether it was there.
pub(crate) async fn delete_console_session(
    tx: &DbConnection<'_>,
    session: &ConsoleSessionRow,
) -> Result<bool, DbError> {
    let hash = SqlParam::Bytes(&session.hash);
    let deleted = tx
        .execute("delete from sessions where token_hash = $1", &[hash])
        .await?;
    tx.execute(
        "delete from sessions where principal = $1 and console_session = $2",
        &[
            SqlParam::id(session.principal),
            SqlParam::Bytes(&session.hash),
        ],
    )
    .await?;
    Ok(deleted > 0)
}

/// The console sessions that one key has beyond `max_sessions`, the oldest ones and never `newest`: a clock that was set back would
/// make it the oldest.
pub(crate) async fn list_surplus_sessions(
    tx: &DbConnection<'_>,
    principal: AgentId,
    made_with: Option<&str>,
    newest: &[u8; 32],
    max_sessions: usize,
) -> Result<Vec<ConsoleSessionRow>, DbError> {
    const SQL: &str = "select token_hash, principal from sessions where principal = $1 and console_session = token_hash
         and coalesce(made_with, '') = $2 and token_hash <> $3 order by expires_at desc, token_hash";
    let params = [
        SqlParam::id(principal),
        SqlParam::Text(made_with.unwrap_or_default()),
        SqlParam::Bytes(newest),
    ];
    let mut sessions = read_sessions(tx, SQL, &params).await?;
    Ok(sessions.split_off((max_sessions - 1).min(sessions.len())))
}

/// Console sessions whose time is over.
pub(crate) async fn list_expired_sessions(
    tx: &DbConnection<'_>,
    now: UnixMicros,
    limit: i64,
) -> Result<Vec<ConsoleSessionRow>, DbError> {
    const SQL: &str = "select token_hash, principal from sessions where expires_at <= $1 and console_session = token_hash
         order by expires_at limit $2";
    read_sessions(tx, SQL, &[SqlParam::Int(now.0), SqlParam::Int(limit)]).await
}

async fn read_sessions(
    tx: &DbConnection<'_>,
    sql: &'static str,
    params: &[SqlParam<'_>],
) -> Result<Vec<ConsoleSessionRow>, DbError> {
    let rows = tx.query(sql, params).await?;
    let mut sessions = Vec::new();
    for row in rows {
        let mut columns = row.columns();
        let hash = columns.maybe_bytes()?.and_then(|hash| hash.try_into().ok());
        let principal = columns.id()?;
        sessions.extend(hash.map(|hash| ConsoleSessionRow { hash, principal }));
    }
    Ok(sessions)
}
