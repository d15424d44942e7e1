//! Further keys of agents, stored as hashes.

use super::{AgentId, ColumnReader, DbConnection, DbError, FromRow, SqlParam};
use chorus_wire::agent_key::KeyScopes;
use chorus_wire::time::UnixMicros;

/// A further key. The row is deleted when the key ends.
#[derive(Clone, Debug)]
pub(crate) struct AgentKeyRow {
    pub id: String,
    pub agent: AgentId,
    pub hash: [u8; 32],
    pub label: String,
    pub scopes: KeyScopes,
    pub created_at: UnixMicros,
    pub expires_at: Option<UnixMicros>,
    /// The day of its last use, as days since 1970.
    pub used_on: Option<i64>,
}

macro_rules! select_keys {
    ($rest:literal) => {
        concat!(
            "select id, agent, hash, label, scopes, created_at, expires_at, used_on from agent_keys ",
            $rest
        )
    };
}

/// Reads the columns of `select_keys!`.
impl FromRow for AgentKeyRow {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(AgentKeyRow {
            id: columns.text()?,
            agent: columns.id()?,
            hash: columns
                .maybe_bytes()?
                .and_then(|bytes| bytes.try_into().ok())
                .ok_or_else(|| DbError::Other("a key has no hash".into()))?,
            label: columns.text()?,
            scopes: KeyScopes::from_text(&columns.text()?),
            created_at: UnixMicros(columns.int()?),
            expires_at: columns.maybe_int()?.map(UnixMicros),
            used_on: columns.maybe_int()?,
        })
    }
}

pub(crate) async fn insert_key(tx: &DbConnection<'_>, key: &AgentKeyRow) -> Result<(), DbError> {
    const SQL: &str =
        "insert into agent_keys (id, agent, hash, label, scopes, created_at, expires_at, used_on)
                       values ($1, $2, $3, $4, $5, $6, $7, $8)";
    let scopes = key.scopes.to_text();
    let params = [
        SqlParam::Text(&key.id),
        SqlParam::id(key.agent),
        SqlParam::Bytes(&key.hash),
        SqlParam::Text(&key.label),
        SqlParam::Text(&scopes),
        SqlParam::Int(key.created_at.0),
        SqlParam::optional_int(key.expires_at.map(|at| at.0)),
        SqlParam::optional_int(key.used_on),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// The keys of an agent, oldest first.
pub(crate) async fn list_keys(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<Vec<AgentKeyRow>, DbError> {
    const SQL: &str = select_keys!("where agent = $1 order by created_at, id");
    tx.query(SQL, &[SqlParam::id(agent)])
        .await?
        .into_iter()
        .map(AgentKeyRow::from_row)
        .collect()
}

pub(crate) async fn find_key_by_hash(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
) -> Result<Option<AgentKeyRow>, DbError> {
    const SQL: &str = select_keys!("where hash = $1");
    tx.query_first(SQL, &[SqlParam::Bytes(hash)])
        .await?
        .map(AgentKeyRow::from_row)
        .transpose()
}

pub(crate) async fn find_key(
    tx: &DbConnection<'_>,
    id: &str,
) -> Result<Option<AgentKeyRow>, DbError> {
    // PostgreSQL rejects a text with a NUL character; no id contains one.
    if id.contains('\0') {
        return Ok(None);
    }
    const SQL: &str = select_keys!("where id = $1");
    tx.query_first(SQL, &[SqlParam::Text(id)])
        .await?
        .map(AgentKeyRow::from_row)
        .transpose()
}

/// The keys whose time is over, at most `limit`.
pub(crate) async fn list_expired_keys(
    tx: &DbConnection<'_>,
    now: UnixMicros,
    limit: usize,
) -> Result<Vec<AgentKeyRow>, DbError> {
    const SQL: &str = select_keys!("where expires_at <= $1 order by expires_at limit $2");
    tx.query(SQL, &[SqlParam::Int(now.0), SqlParam::Int(limit as i64)])
        .await?
        .into_iter()
        .map(AgentKeyRow::from_row)
        .collect()
}

/// Deletes a key; false when it was gone already.
pub(crate) async fn delete_key(tx: &DbConnection<'_>, id: &str) -> Result<bool, DbError> {
    let count = tx
        .execute(
            "delete from agent_keys where id = $1",
            &[SqlParam::Text(id)],
        )
        .await?;
    Ok(count > 0)
}

/// Deletes all keys of an agent that is unregistered.
pub(crate) async fn delete_agent_keys(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<(), DbError> {
    tx.execute(
        "delete from agent_keys where agent = $1",
        &[SqlParam::id(agent)],
    )
    .await
    .map(drop)
}

/// Records the day of the key's last use.
pub(crate) async fn record_use(tx: &DbConnection<'_>, id: &str, day: i64) -> Result<(), DbError> {
    const SQL: &str = "update agent_keys set used_on = $2 where id = $1";
    tx.execute(SQL, &[SqlParam::Text(id), SqlParam::Int(day)])
        .await
        .map(drop)
}
