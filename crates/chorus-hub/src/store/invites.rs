//! Registration invite codes, hashed; a hub that ever had one stays gated until it is opened.

use super::{DbConnection, DbError, SqlParam, SqlRow};
use chorus_wire::{reply::InviteRecord, time::UnixMicros};

fn read_invite_row(mut row: SqlRow) -> Result<InviteRecord, DbError> {
    Ok(InviteRecord {
        id: row.text(0)?,
        code: None,
        label: row.text(1)?,
        uses: row.int(2)? as u64,
        max_uses: row.maybe_int(3)?.map(|n| n as u64),
        expires_at: row.maybe_int(4)?.map(UnixMicros),
        revoked: row.int(5)? != 0,
        created_at: UnixMicros(row.int(6)?),
    })
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
    const SQL: &str = "select id, label, uses, max_uses, expires_at, revoked, created_at from invites order by created_at, id limit 10000";
    tx.query(SQL, &[])
        .await?
        .into_iter()
        .map(read_invite_row)
        .collect()
}

pub(crate) async fn find_invite_by_code(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
) -> Result<Option<InviteRecord>, DbError> {
    const SQL: &str = "select id, label, uses, max_uses, expires_at, revoked, created_at from invites where code_hash = $1";
    tx.query_first(SQL, &[SqlParam::Bytes(hash)])
        .await?
        .map(read_invite_row)
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
    // PostgreSQL has no text with this in it, and would fail where nothing is found.
    if id.contains('\0') {
        return Ok(None);
    }
    const SQL: &str = "update invites set revoked = 1 where id = $1
                       returning id, label, uses, max_uses, expires_at, revoked, created_at";
    tx.query_first(SQL, &[SqlParam::Text(id)])
        .await?
        .map(read_invite_row)
        .transpose()
}
