//! Invite codes for registration, stored as hashes. A hub that ever had one requires an invite until it is opened.

use super::{ColumnReader, DbConnection, DbError, FromRow, SqlParam};
use chorus_wire::{reply::InviteRecord, time::UnixMicros};

macro_rules! invite_columns {
    () => {
        "id, label, uses, max_uses, expires_at, revoked, created_at"
    };
}

/// Reads `invite_columns!`.
impl FromRow for InviteRecord {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(InviteRecord {
            id: columns.text()?,
            code: None,
            label: columns.text()?,
            uses: columns.int()? as u64,
            max_uses: columns.maybe_int()?.map(|n| n as u64),
            expires_at: columns.maybe_int()?.map(UnixMicros),
            revoked: columns.int()? != 0,
            created_at: UnixMicros(columns.int()?),
        })
    }
}

pub(crate) async fn insert_invite(
    tx: &DbConnection<'_>,
    invite: &InviteRecord,
    hash: &[u8; 32],
) -> Result<(), DbError> {
    const SQL: &str = "insert into invites (id, code_hash, label, uses, max_uses, expires_at, revoked, created_at)
                       values ($1, $2, $3, 0, $4, $5, 0, $6)";
    let params = [
        SqlParam::Text(&invite.id),
        SqlParam::Bytes(hash),
        SqlParam::Text(&invite.label),
        SqlParam::optional_int(invite.max_uses.map(|n| n as i64)),
        SqlParam::optional_int(invite.expires_at.map(|at| at.0)),
        SqlParam::Int(invite.created_at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

pub(crate) async fn list_invites(tx: &DbConnection<'_>) -> Result<Vec<InviteRecord>, DbError> {
    const SQL: &str = concat!(
        "select ",
        invite_columns!(),
        " from invites order by created_at, id limit 10000"
    );
    tx.query(SQL, &[])
        .await?
        .into_iter()
        .map(InviteRecord::from_row)
        .collect()
}

pub(crate) async fn find_invite_by_code(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
) -> Result<Option<InviteRecord>, DbError> {
    const SQL: &str = concat!(
        "select ",
        invite_columns!(),
        " from invites where code_hash = $1"
    );
    tx.query_first(SQL, &[SqlParam::Bytes(hash)])
        .await?
        .map(InviteRecord::from_row)
        .transpose()
}

pub(crate) async fn record_invite_use(tx: &DbConnection<'_>, id: &str) -> Result<(), DbError> {
    tx.execute(
        "update invites set uses = uses + 1 where id = $1",
        &[SqlParam::Text(id)],
    )
    .await
    .map(drop)
}

pub(crate) async fn revoke_invite(
    tx: &DbConnection<'_>,
    id: &str,
) -> Result<Option<InviteRecord>, DbError> {
    // PostgreSQL rejects a text with a NUL character; no stored id contains one.
    if id.contains('\0') {
        return Ok(None);
    }
    const SQL: &str = concat!(
        "update invites set revoked = 1 where id = $1 returning ",
        invite_columns!()
    );
    tx.query_first(SQL, &[SqlParam::Text(id)])
        .await?
        .map(InviteRecord::from_row)
        .transpose()
}
