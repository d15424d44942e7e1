//! Organisations, their members and the roles of those.

use super::{DbConnection, DbError, SqlParam, SqlRow, accords, grants};
use chorus_wire::{
    frame::RoleName, frame::organisation::OWNER_ROLE, identity::Handle, time::UnixMicros,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrgRecord {
    pub id: i64,
    pub handle: Handle,
    pub created_at: UnixMicros,
}

/// A handle's place in an organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrgMemberRecord {
    pub id: i64,
    pub handle: Handle,
    /// Sorted.
    pub roles: Vec<RoleName>,
    /// Not yet, while it is only invited.
    pub accepted_at: Option<UnixMicros>,
}

impl OrgMemberRecord {
    pub fn has_role(&self, role: &str) -> bool {
        self.accepted_at.is_some() && self.roles.iter().any(|own| own.as_str() == role)
    }

    /// May change the organisation.
    pub fn is_owner(&self) -> bool {
        self.has_role(OWNER_ROLE)
    }
}

/// A handle as it was written; it was checked then.
pub(super) fn parse_stored_handle(text: &str) -> Result<Handle, DbError> {
    Handle::parse(text).ok_or_else(|| DbError::Other(format!("{text} is stored as a handle")))
}

pub(super) fn parse_stored_role(text: &str) -> Result<RoleName, DbError> {
    RoleName::parse(text).ok_or_else(|| DbError::Other(format!("{text} is stored as a role")))
}

fn read_org_row(mut row: SqlRow) -> Result<OrgRecord, DbError> {
    Ok(OrgRecord {
        id: row.int(0)?,
        handle: parse_stored_handle(&row.text(1)?)?,
        created_at: UnixMicros(row.int(2)?),
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

fn read_member_row(mut row: SqlRow) -> Result<OrgMemberRecord, DbError> {
    Ok(OrgMemberRecord {
        id: row.int(0)?,
        handle: parse_stored_handle(&row.text(1)?)?,
        roles: row
            .text(2)?
            .split_ascii_whitespace()
            .map(parse_stored_role)
            .collect::<Result<_, _>>()?,
        accepted_at: row.maybe_int(3)?.map(UnixMicros),
    })
}

/// Its handle is claimed beside it.
pub(crate) async fn insert_org(tx: &DbConnection<'_>, org: &OrgRecord) -> Result<(), DbError> {
    const SQL: &str = "insert into orgs (id, handle, created_at) values ($1, $2, $3)";
    let params = [
        SqlParam::Int(org.id),
        SqlParam::Text(org.handle.as_str()),
        SqlParam::Int(org.created_at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

pub(crate) async fn find_org(
    tx: &DbConnection<'_>,
    handle: &Handle,
) -> Result<Option<OrgRecord>, DbError> {
    const SQL: &str = "select id, handle, created_at from orgs where handle = $1";
    tx.query_first(SQL, &[SqlParam::Text(handle.as_str())])
        .await?
        .map(read_org_row)
        .transpose()
}

/// Invited or accepted.
pub(crate) async fn find_member(
    tx: &DbConnection<'_>,
    org: i64,
    id: i64,
) -> Result<Option<OrgMemberRecord>, DbError> {
    const SQL: &str = members!("where m.org = $1 and m.member = $2");
    tx.query_first(SQL, &[SqlParam::Int(org), SqlParam::Int(id)])
        .await?
        .map(read_member_row)
        .transpose()
}

/// Those who accepted, in the order of their ids.
pub(crate) async fn list_members(
    tx: &DbConnection<'_>,
    org: i64,
) -> Result<Vec<OrgMemberRecord>, DbError> {
    const SQL: &str = members!("where m.org = $1 and m.accepted_at is not null order by m.member");
    tx.query(SQL, &[SqlParam::Int(org)])
        .await?
        .into_iter()
        .map(read_member_row)
        .collect()
}

/// Invited ones with them.
pub(crate) async fn count_members(tx: &DbConnection<'_>, org: i64) -> Result<usize, DbError> {
    let row = tx
        .query_first(
            "select count(*) from members where org = $1",
            &[SqlParam::Int(org)],
        )
        .await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))? as usize)
}

/// How many organisations the agent has joined.
pub(crate) async fn count_joined_orgs(tx: &DbConnection<'_>, agent: i64) -> Result<usize, DbError> {
    const SQL: &str = "select count(*) from members where member = $1 and accepted_at is not null";
    let row = tx.query_first(SQL, &[SqlParam::Int(agent)]).await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))? as usize)
}

/// Whether somebody else than `agent` owns the organisation too.
pub(crate) async fn has_other_owner(
    tx: &DbConnection<'_>,
    org: i64,
    agent: i64,
) -> Result<bool, DbError> {
    const SQL: &str =
        "select member from members where org = $1 and member <> $2 and accepted_at is not null
                       and ' ' || roles || ' ' like '% owner %' limit 1";
    Ok(tx
        .query_first(SQL, &[SqlParam::Int(org), SqlParam::Int(agent)])
        .await?
        .is_some())
}

/// Invites a member, or changes the roles of one that is there; whether it has accepted stays as it is.
pub(crate) async fn upsert_member(
    tx: &DbConnection<'_>,
    org: i64,
    agent: i64,
    roles: &[RoleName],
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "insert into members (org, member, roles, invited_at) values ($1, $2, $3, $4)
                       on conflict (org, member) do update set roles = excluded.roles";
    let roles = roles
        .iter()
        .map(RoleName::as_str)
        .collect::<Vec<_>>()
        .join(" ");
    tx.execute(
        SQL,
        &[
            SqlParam::Int(org),
            SqlParam::Int(agent),
            SqlParam::Text(&roles),
            SqlParam::Int(now.0),
        ],
    )
    .await
    .map(drop)
}

/// The member's own yes; a first one stands.
pub(crate) async fn accept_membership(
    tx: &DbConnection<'_>,
    org: i64,
    agent: i64,
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "update members set accepted_at = $3 where org = $1 and member = $2 and accepted_at is null";
    tx.execute(
        SQL,
        &[
            SqlParam::Int(org),
            SqlParam::Int(agent),
            SqlParam::Int(now.0),
        ],
    )
    .await
    .map(drop)
}

/// False when it was neither a member nor invited.
pub(crate) async fn remove_member(
    tx: &DbConnection<'_>,
    org: i64,
    agent: i64,
) -> Result<bool, DbError> {
    const SQL: &str = "delete from members where org = $1 and member = $2";
    Ok(tx
        .execute(SQL, &[SqlParam::Int(org), SqlParam::Int(agent)])
        .await?
        > 0)
}

/// The agent is gone, and so are its memberships and grants. An organisation ends with its last owner: nobody is left who could revoke
/// what it granted. Answers with every organisation for which that changes something.
pub(crate) async fn remove_agent_memberships(
    tx: &DbConnection<'_>,
    agent: i64,
) -> Result<Vec<Handle>, DbError> {
    const JOINED: &str =
        "select o.id, o.handle, o.created_at from orgs o join members m on m.org = o.id
                          where m.member = $1 and m.accepted_at is not null order by o.id";
    let joined: Vec<OrgRecord> = tx
        .query(JOINED, &[SqlParam::Int(agent)])
        .await?
        .into_iter()
        .map(read_org_row)
        .collect::<Result<_, _>>()?;
    let mut changed_orgs = Vec::with_capacity(joined.len());
    for org in joined {
        if !has_other_owner(tx, org.id, agent).await? {
            changed_orgs.extend(accords::delete_org_accords(tx, org.id).await?);
            delete_org(tx, org.id).await?;
        }
        changed_orgs.push(org.handle);
    }
    tx.execute(
        "delete from members where member = $1",
        &[SqlParam::Int(agent)],
    )
    .await?;
    grants::delete_agent_grants(tx, agent).await?;
    Ok(changed_orgs)
}

/// Its handle is free; whoever takes it next inherits nothing.
async fn delete_org(tx: &DbConnection<'_>, org: i64) -> Result<(), DbError> {
    tx.execute("delete from members where org = $1", &[SqlParam::Int(org)])
        .await?;
    tx.execute(
        "delete from names where principal = $1",
        &[SqlParam::Int(org)],
    )
    .await?;
    tx.execute("delete from orgs where id = $1", &[SqlParam::Int(org)])
        .await
        .map(drop)
}
