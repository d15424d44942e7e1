//! Registration invite codes, hashed; a hub that ever had one stays gated until it is opened.

use super::{DbError, Param, Row, Tx};
use chorus_wire::{reply::Invite, time::Micros};

fn invite(mut row: Row) -> Result<Invite, DbError> {
    Ok(Invite {
        id: row.text(0)?,
        code: None,
        label: row.text(1)?,
        uses: row.int(2)? as u64,
        max_uses: row.maybe_int(3)?.map(|n| n as u64),
        expires_at: row.maybe_int(4)?.map(Micros),
        revoked: row.int(5)? != 0,
        created_at: Micros(row.int(6)?),
    })
}

pub(crate) async fn insert(tx: &Tx<'_>, invite: &Invite, hash: &[u8; 32]) -> Result<(), DbError> {
    const SQL: &str = "insert into invites (id, code_hash, label, uses, max_uses, expires_at, revoked, created_at)
                       values ($1, $2, $3, 0, $4, $5, 0, $6)";
    let params = [
        Param::Text(&invite.id),
        Param::Bytes(hash),
        Param::Text(&invite.label),
        Param::int(invite.max_uses.map(|n| n as i64)),
        Param::int(invite.expires_at.map(|at| at.0)),
        Param::Int(invite.created_at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

pub(crate) async fn list(tx: &Tx<'_>) -> Result<Vec<Invite>, DbError> {
    const SQL: &str = "select id, label, uses, max_uses, expires_at, revoked, created_at from invites order by created_at, id limit 10000";
    tx.query(SQL, &[]).await?.into_iter().map(invite).collect()
}

pub(crate) async fn by_code(tx: &Tx<'_>, hash: &[u8; 32]) -> Result<Option<Invite>, DbError> {
    const SQL: &str = "select id, label, uses, max_uses, expires_at, revoked, created_at from invites where code_hash = $1";
    tx.one(SQL, &[Param::Bytes(hash)])
        .await?
        .map(invite)
        .transpose()
}

pub(crate) async fn spend(tx: &Tx<'_>, id: &str) -> Result<(), DbError> {
    tx.execute(
        "update invites set uses = uses + 1 where id = $1",
        &[Param::Text(id)],
    )
    .await
    .map(drop)
}

pub(crate) async fn revoke(tx: &Tx<'_>, id: &str) -> Result<Option<Invite>, DbError> {
    // PostgreSQL has no text with this in it, and would fail where nothing is found.
    if id.contains('\0') {
        return Ok(None);
    }
    const SQL: &str = "update invites set revoked = 1 where id = $1
                       returning id, label, uses, max_uses, expires_at, revoked, created_at";
    tx.one(SQL, &[Param::Text(id)])
        .await?
        .map(invite)
        .transpose()
}
