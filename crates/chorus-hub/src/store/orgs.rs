//! Organisations, their members and the roles of those.

use super::{DbError, Param, Row, Tx, accords, grants};
use chorus_wire::{frame::Role, frame::org::OWNER, identity::Handle, time::Micros};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Org {
    pub id: i64,
    pub handle: Handle,
    pub created_at: Micros,
}

/// A handle's place in an organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub id: i64,
    pub handle: Handle,
    /// Sorted.
    pub roles: Vec<Role>,
    /// Not yet, while it is only invited.
    pub accepted_at: Option<Micros>,
}

impl Member {
    pub fn is(&self, role: &str) -> bool {
        self.accepted_at.is_some() && self.roles.iter().any(|own| own.as_str() == role)
    }

    /// May change the organisation.
    pub fn owns(&self) -> bool {
        self.is(OWNER)
    }
}

/// A handle as it was written; it was checked then.
pub(super) fn handle(text: &str) -> Result<Handle, DbError> {
    Handle::parse(text).ok_or_else(|| DbError::Other(format!("{text} is stored as a handle")))
}

pub(super) fn role(text: &str) -> Result<Role, DbError> {
    Role::parse(text).ok_or_else(|| DbError::Other(format!("{text} is stored as a role")))
}

fn org(mut row: Row) -> Result<Org, DbError> {
    Ok(Org {
        id: row.int(0)?,
        handle: handle(&row.text(1)?)?,
        created_at: Micros(row.int(2)?),
    })
}

macro_rules! members {
    ($rest:literal) => {
        concat!(
            "select m.member, p.handle, m.roles, m.accepted_at from members m join principals p on p.id = m.member ",
            $rest
        )
    };
}

fn read_member(mut row: Row) -> Result<Member, DbError> {
    Ok(Member {
        id: row.int(0)?,
        handle: handle(&row.text(1)?)?,
        roles: row
            .text(2)?
            .split_ascii_whitespace()
            .map(role)
            .collect::<Result<_, _>>()?,
        accepted_at: row.maybe_int(3)?.map(Micros),
    })
}

/// Its handle is claimed beside it.
pub(crate) async fn insert(tx: &Tx<'_>, org: &Org) -> Result<(), DbError> {
    const SQL: &str = "insert into orgs (id, handle, created_at) values ($1, $2, $3)";
    let params = [
        Param::Int(org.id),
        Param::Text(org.handle.as_str()),
        Param::Int(org.created_at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

pub(crate) async fn by_handle(tx: &Tx<'_>, handle: &Handle) -> Result<Option<Org>, DbError> {
    const SQL: &str = "select id, handle, created_at from orgs where handle = $1";
    tx.one(SQL, &[Param::Text(handle.as_str())])
        .await?
        .map(org)
        .transpose()
}

/// Invited or accepted.
pub(crate) async fn member(tx: &Tx<'_>, org: i64, id: i64) -> Result<Option<Member>, DbError> {
    const SQL: &str = members!("where m.org = $1 and m.member = $2");
    tx.one(SQL, &[Param::Int(org), Param::Int(id)])
        .await?
        .map(read_member)
        .transpose()
}

/// Those who accepted, in the order of their ids.
pub(crate) async fn members(tx: &Tx<'_>, org: i64) -> Result<Vec<Member>, DbError> {
    const SQL: &str = members!("where m.org = $1 and m.accepted_at is not null order by m.member");
    tx.query(SQL, &[Param::Int(org)])
        .await?
        .into_iter()
        .map(read_member)
        .collect()
}

/// Invited ones with them.
pub(crate) async fn count(tx: &Tx<'_>, org: i64) -> Result<usize, DbError> {
    let row = tx
        .one(
            "select count(*) from members where org = $1",
            &[Param::Int(org)],
        )
        .await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))? as usize)
}

/// How many organisations the agent has joined.
pub(crate) async fn joined(tx: &Tx<'_>, agent: i64) -> Result<usize, DbError> {
    const SQL: &str = "select count(*) from members where member = $1 and accepted_at is not null";
    let row = tx.one(SQL, &[Param::Int(agent)]).await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))? as usize)
}

/// Whether somebody else than `agent` owns the organisation too.
pub(crate) async fn other_owner(tx: &Tx<'_>, org: i64, agent: i64) -> Result<bool, DbError> {
    const SQL: &str =
        "select member from members where org = $1 and member <> $2 and accepted_at is not null
                       and ' ' || roles || ' ' like '% owner %' limit 1";
    Ok(tx
        .one(SQL, &[Param::Int(org), Param::Int(agent)])
        .await?
        .is_some())
}

/// Invites a member, or changes the roles of one that is there; whether it has accepted stays as it is.
pub(crate) async fn put_member(
    tx: &Tx<'_>,
    org: i64,
    agent: i64,
    roles: &[Role],
    now: Micros,
) -> Result<(), DbError> {
    const SQL: &str = "insert into members (org, member, roles, invited_at) values ($1, $2, $3, $4)
                       on conflict (org, member) do update set roles = excluded.roles";
    let roles = roles.iter().map(Role::as_str).collect::<Vec<_>>().join(" ");
    tx.execute(
        SQL,
        &[
            Param::Int(org),
            Param::Int(agent),
            Param::Text(&roles),
            Param::Int(now.0),
        ],
    )
    .await
    .map(drop)
}

/// The member's own yes; a first one stands.
pub(crate) async fn accept(tx: &Tx<'_>, org: i64, agent: i64, now: Micros) -> Result<(), DbError> {
    const SQL: &str = "update members set accepted_at = $3 where org = $1 and member = $2 and accepted_at is null";
    tx.execute(
        SQL,
        &[Param::Int(org), Param::Int(agent), Param::Int(now.0)],
    )
    .await
    .map(drop)
}

/// False when it was neither a member nor invited.
pub(crate) async fn remove(tx: &Tx<'_>, org: i64, agent: i64) -> Result<bool, DbError> {
    const SQL: &str = "delete from members where org = $1 and member = $2";
    Ok(tx
        .execute(SQL, &[Param::Int(org), Param::Int(agent)])
        .await?
        > 0)
}

/// The agent is gone, and so are its memberships and grants. An organisation ends with its last owner: nobody is left who could revoke
/// what it granted. Answers with every organisation for which that changes something.
pub(crate) async fn forget(tx: &Tx<'_>, agent: i64) -> Result<Vec<Handle>, DbError> {
    const JOINED: &str =
        "select o.id, o.handle, o.created_at from orgs o join members m on m.org = o.id
                          where m.member = $1 and m.accepted_at is not null order by o.id";
    let joined: Vec<Org> = tx
        .query(JOINED, &[Param::Int(agent)])
        .await?
        .into_iter()
        .map(org)
        .collect::<Result<_, _>>()?;
    let mut touched = Vec::with_capacity(joined.len());
    for org in joined {
        if !other_owner(tx, org.id, agent).await? {
            touched.extend(accords::forget(tx, org.id).await?);
            end(tx, org.id).await?;
        }
        touched.push(org.handle);
    }
    tx.execute(
        "delete from members where member = $1",
        &[Param::Int(agent)],
    )
    .await?;
    grants::forget(tx, agent).await?;
    Ok(touched)
}

/// Its handle is free; whoever takes it next inherits nothing.
async fn end(tx: &Tx<'_>, org: i64) -> Result<(), DbError> {
    tx.execute("delete from members where org = $1", &[Param::Int(org)])
        .await?;
    tx.execute("delete from names where principal = $1", &[Param::Int(org)])
        .await?;
    tx.execute("delete from orgs where id = $1", &[Param::Int(org)])
        .await
        .map(drop)
}
