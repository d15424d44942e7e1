//! Rotations of which the new key has not been used yet: the client may have missed the answer, and may ask again.

use super::{AgentId, ColumnReader, DbConnection, DbError, FromRow, IdempotencyKey, SqlParam};

/// A rotation that may be repeated. An agent has at most one.
#[derive(Clone, Debug)]
pub(crate) struct PendingRotation {
    pub agent: AgentId,
    /// The hash of the key that asked for it.
    pub asked_by: [u8; 32],
    /// The hash of the key that it made last.
    pub new_hash: [u8; 32],
    pub request: IdempotencyKey,
}

fn read_hash(columns: &mut ColumnReader) -> Result<[u8; 32], DbError> {
    columns
        .maybe_bytes()?
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| DbError::Other("a rotation has no hash".into()))
}

impl FromRow for PendingRotation {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(PendingRotation {
            agent: columns.id()?,
            asked_by: read_hash(columns)?,
            new_hash: read_hash(columns)?,
            request: IdempotencyKey {
                key: columns.text()?,
                fingerprint: read_hash(columns)?,
            },
        })
    }
}

/// Records the agent's newest rotation in place of the one before.
pub(crate) async fn record_rotation(
    tx: &DbConnection<'_>,
    rotation: &PendingRotation,
) -> Result<(), DbError> {
    forget_rotation(tx, rotation.agent).await?;
    const SQL: &str =
        "insert into key_rotations (agent, asked_by, new_hash, request_key, fingerprint)
                       values ($1, $2, $3, $4, $5)";
    let params = [
        SqlParam::id(rotation.agent),
        SqlParam::Bytes(&rotation.asked_by),
        SqlParam::Bytes(&rotation.new_hash),
        SqlParam::Text(&rotation.request.key),
        SqlParam::Bytes(&rotation.request.fingerprint),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// The rotation that the key of this hash asked for, if it may still be repeated.
pub(crate) async fn find_rotation_asked_by(
    tx: &DbConnection<'_>,
    key_hash: &[u8; 32],
) -> Result<Option<PendingRotation>, DbError> {
    const SQL: &str = "select agent, asked_by, new_hash, request_key, fingerprint from key_rotations where asked_by = $1";
    tx.query_first(SQL, &[SqlParam::Bytes(key_hash)])
        .await?
        .map(PendingRotation::from_row)
        .transpose()
}

/// Whether the key of this hash was made by a rotation and has not been used yet.
pub(crate) async fn is_unused_key(
    tx: &DbConnection<'_>,
    key_hash: &[u8; 32],
) -> Result<bool, DbError> {
    const SQL: &str = "select 1 from key_rotations where new_hash = $1";
    let row = tx.query_first(SQL, &[SqlParam::Bytes(key_hash)]).await?;
    Ok(row.is_some())
}

/// The new key was used: the rotation that made it cannot be repeated any more.
pub(crate) async fn confirm_rotation(
    tx: &DbConnection<'_>,
    key_hash: &[u8; 32],
) -> Result<(), DbError> {
    tx.execute(
        "delete from key_rotations where new_hash = $1",
        &[SqlParam::Bytes(key_hash)],
    )
    .await
    .map(drop)
}

pub(crate) async fn forget_rotation(tx: &DbConnection<'_>, agent: AgentId) -> Result<(), DbError> {
    tx.execute(
        "delete from key_rotations where agent = $1",
        &[SqlParam::id(agent)],
    )
    .await
    .map(drop)
}
