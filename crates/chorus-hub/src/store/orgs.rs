//! Organisations, their members and the members' roles.

use super::{
    AgentId, ColumnReader, ContactLimits, DbConnection, DbError, FromRow, OrgId, SqlParam, accords,
    grants, open_items,
};
use chorus_wire::{
    frame::RoleName, frame::organisation::OWNER_ROLE, identity::Handle, time::UnixMicros,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrgRecord {
    pub id: OrgId,
    pub handle: Handle,
    pub created_at: UnixMicros,
}

/// A handle's membership of an organisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OrgMemberRecord {
    pub id: AgentId,
    pub handle: Handle,
    /// Sorted.
    pub roles: Vec<RoleName>,
    /// `None` while the member is only invited.
    pub accepted_at: Option<UnixMicros>,
    pub contact_limits: ContactLimits,
}

impl OrgMemberRecord {
    pub fn has_role(&self, role: &str) -> bool {
        self.accepted_at.is_some() && self.roles.iter().any(|own| own.as_str() == role)
    }

    /// Owners may change the organisation.
    pub fn is_owner(&self) -> bool {
        self.has_role(OWNER_ROLE)
    }
}

/// Parses a handle from the database; it was validated when it was stored.
pub(super) fn parse_stored_handle(text: &str) -> Result<Handle, DbError> {
    Handle::parse(text).ok_or_else(|| DbError::Other(format!("{text} is stored as a handle")))
}

pub(super) fn parse_stored_role(text: &str) -> Result<RoleName, DbError> {
    RoleName::parse(text).ok_or_else(|| DbError::Other(format!("{text} is stored as a role")))
}

macro_rules! org_columns {
    () => {
        "o.id, o.handle, o.created_at"
    };
}

/// Reads `org_columns!`.
impl FromRow for OrgRecord {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(OrgRecord {
            id: columns.id()?,
            handle: parse_stored_handle(&columns.text()?)?,
            created_at: UnixMicros(columns.int()?),
        })
    }
}

macro_rules! select_org_members {
    ($rest:literal) => {
        concat!(
            "select m.member, p.handle, m.roles, m.accepted_at, p.contact_version, p.contacts_only from members m join principals p on p.id = m.member ",
            $rest
        )
    };
}

/// Reads the columns of `select_org_members!`.
impl FromRow for OrgMemberRecord {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(OrgMemberRecord {
            id: columns.id()?,
            handle: parse_stored_handle(&columns.text()?)?,
            roles: columns
                .text()?
                .split_ascii_whitespace()
                .map(parse_stored_role)
                .collect::<Result<_, _>>()?,
            accepted_at: columns.maybe_int()?.map(UnixMicros),
            contact_limits: ContactLimits::from_columns(columns)?,
        })
    }
}

/// Inserts an organisation; the caller also claims its handle.
pub(crate) async fn insert_org(tx: &DbConnection<'_>, org: &OrgRecord) -> Result<(), DbError> {
    const SQL: &str = "insert into orgs (id, handle, created_at) values ($1, $2, $3)";
    let params = [
        SqlParam::id(org.id),
        SqlParam::Text(org.handle.as_str()),
        SqlParam::Int(org.created_at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

pub(crate) async fn find_org(
    tx: &DbConnection<'_>,
    handle: &Handle,
) -> Result<Option<OrgRecord>, DbError> {
    const SQL: &str = concat!(
        "select ",
        org_columns!(),
        " from orgs o where o.handle = $1"
    );
    tx.query_first(SQL, &[SqlParam::Text(handle.as_str())])
        .await?
        .map(OrgRecord::from_row)
        .transpose()
}

/// The membership of an agent, also one that is only invited.
pub(crate) async fn find_member(
    tx: &DbConnection<'_>,
    org: OrgId,
    id: AgentId,
) -> Result<Option<OrgMemberRecord>, DbError> {
    const SQL: &str = select_org_members!("where m.org = $1 and m.member = $2");
    tx.query_first(SQL, &[SqlParam::id(org), SqlParam::id(id)])
        .await?
        .map(OrgMemberRecord::from_row)
        .transpose()
}

/// The members that have accepted, ordered by id.
pub(crate) async fn list_members(
    tx: &DbConnection<'_>,
    org: OrgId,
) -> Result<Vec<OrgMemberRecord>, DbError> {
    const SQL: &str =
        select_org_members!("where m.org = $1 and m.accepted_at is not null order by m.member");
    tx.query(SQL, &[SqlParam::id(org)])
        .await?
        .into_iter()
        .map(OrgMemberRecord::from_row)
        .collect()
}

/// Counts members, also those that are only invited.
pub(crate) async fn count_members(tx: &DbConnection<'_>, org: OrgId) -> Result<usize, DbError> {
    let row = tx
        .query_first(
            "select count(*) from members where org = $1",
            &[SqlParam::id(org)],
        )
        .await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))? as usize)
}

/// Counts the organisations that the agent has joined.
pub(crate) async fn count_joined_orgs(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<usize, DbError> {
    const SQL: &str = "select count(*) from members where member = $1 and accepted_at is not null";
    let row = tx.query_first(SQL, &[SqlParam::id(agent)]).await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))? as usize)
}

/// The organisations that the agent has joined.
pub(crate) async fn list_joined_orgs(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<Vec<Handle>, DbError> {
    const SQL: &str = "select o.handle from orgs o join members m on m.org = o.id
                       where m.member = $1 and m.accepted_at is not null order by o.id";
    tx.query(SQL, &[SqlParam::id(agent)])
        .await?
        .into_iter()
        .map(|mut row| parse_stored_handle(&row.text(0)?))
        .collect()
}

/// A membership as its member sees it.
pub(crate) struct OwnMembershipRecord {
    pub org: Handle,
    pub roles: Vec<RoleName>,
    pub is_accepted: bool,
}

/// The organisations that the agent has joined, then those that have invited it, at most `limit`.
pub(crate) async fn list_memberships(
    tx: &DbConnection<'_>,
    agent: AgentId,
    limit: usize,
) -> Result<Vec<OwnMembershipRecord>, DbError> {
    const SQL: &str = "select o.handle, m.roles, case when m.accepted_at is null then 1 else 0 end
                       from orgs o join members m on m.org = o.id
                       where m.member = $1 order by 3, o.id limit $2";
    tx.query(SQL, &[SqlParam::id(agent), SqlParam::Int(limit as i64)])
        .await?
        .into_iter()
        .map(|mut row| {
            Ok(OwnMembershipRecord {
                org: parse_stored_handle(&row.text(0)?)?,
                roles: row
                    .text(1)?
                    .split_whitespace()
                    .map(parse_stored_role)
                    .collect::<Result<_, _>>()?,
                is_accepted: row.int(2)? == 0,
            })
        })
        .collect()
}

/// Whether the organisation has an owner other than `agent`.
pub(crate) async fn has_other_owner(
    tx: &DbConnection<'_>,
    org: OrgId,
    agent: AgentId,
) -> Result<bool, DbError> {
    const SQL: &str =
        "select member from members where org = $1 and member <> $2 and accepted_at is not null
                       and ' ' || roles || ' ' like '% owner %' limit 1";
    Ok(tx
        .query_first(SQL, &[SqlParam::id(org), SqlParam::id(agent)])
        .await?
        .is_some())
}

/// Invites a member, or changes the roles of an existing one; `accepted_at` stays.
pub(crate) async fn upsert_member(
    tx: &DbConnection<'_>,
    org: OrgId,
    agent: AgentId,
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
            SqlParam::id(org),
            SqlParam::id(agent),
            SqlParam::Text(&roles),
            SqlParam::Int(now.0),
        ],
    )
    .await
    .map(drop)
}

/// Accepts an invitation; an earlier acceptance keeps its time.
pub(crate) async fn accept_membership(
    tx: &DbConnection<'_>,
    org: OrgId,
    agent: AgentId,
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "update members set accepted_at = $3 where org = $1 and member = $2 and accepted_at is null";
    tx.execute(
        SQL,
        &[SqlParam::id(org), SqlParam::id(agent), SqlParam::Int(now.0)],
    )
    .await
    .map(drop)
}

/// Removes a member or an invitation; false when there was neither.
pub(crate) async fn remove_member(
    tx: &DbConnection<'_>,
    org: OrgId,
    agent: AgentId,
) -> Result<bool, DbError> {
    const SQL: &str = "delete from members where org = $1 and member = $2";
    Ok(tx
        .execute(SQL, &[SqlParam::id(org), SqlParam::id(agent)])
        .await?
        > 0)
}

/// Deletes the memberships and grants of an agent that unregistered. An organisation ends with its last owner, because no member
/// could revoke its accords any more. Returns every organisation that this changes.
pub(crate) async fn remove_agent_memberships(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<Vec<Handle>, DbError> {
    const JOINED: &str = concat!(
        "select ",
        org_columns!(),
        " from orgs o join members m on m.org = o.id
          where m.member = $1 and m.accepted_at is not null order by o.id"
    );
    let joined: Vec<OrgRecord> = tx
        .query(JOINED, &[SqlParam::id(agent)])
        .await?
        .into_iter()
        .map(OrgRecord::from_row)
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
        &[SqlParam::id(agent)],
    )
    .await?;
    grants::delete_agent_grants(tx, agent).await?;
    open_items::delete_agent_items(tx, agent).await?;
    Ok(changed_orgs)
}

/// Deletes the organisation and frees its handle. The next holder of the handle inherits nothing.
async fn delete_org(tx: &DbConnection<'_>, org: OrgId) -> Result<(), DbError> {
    tx.execute("delete from members where org = $1", &[SqlParam::id(org)])
        .await?;
    open_items::delete_org_items(tx, org).await?;
    tx.execute(
        "delete from names where principal = $1",
        &[SqlParam::id(org)],
    )
    .await?;
    tx.execute("delete from orgs where id = $1", &[SqlParam::id(org)])
        .await
        .map(drop)
}
