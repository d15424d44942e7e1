//! Blocks, contacts and settings: who may contact an agent.

use super::{
    AgentId, ColumnReader, ContactLimits, DbConnection, DbError, FromRow, LogSeq, SqlParam,
};
use chorus_wire::time::UnixMicros;

/// A name on a list of an agent, and since when.
pub(crate) struct ListedName {
    pub name: String,
    pub at: UnixMicros,
}

impl FromRow for ListedName {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(ListedName {
            name: columns.text()?,
            at: UnixMicros(columns.int()?),
        })
    }
}

/// Whether the agent has blocked one of these two names: that of a sender, and that of its host.
pub(crate) async fn has_block(
    tx: &DbConnection<'_>,
    agent: AgentId,
    name: &str,
    host: &str,
) -> Result<bool, DbError> {
    const SQL: &str = "select 1 from blocks where agent = $1 and name in ($2, $3) limit 1";
    let params = [
        SqlParam::id(agent),
        SqlParam::Text(name),
        SqlParam::Text(host),
    ];
    Ok(tx.query_first(SQL, &params).await?.is_some())
}

/// Whether the other agent is a contact: the agent added it or wrote to it, or they share an owner, an organisation or a channel.
pub(crate) async fn is_contact(
    tx: &DbConnection<'_>,
    agent: AgentId,
    other: AgentId,
) -> Result<bool, DbError> {
    const QUERIES: [&str; 5] = [
        "select 1 from contacts where agent = $1 and contact = $2",
        "select 1 from correspondents where agent = $1 and contact = $2",
        "select 1 from principals a join principals b on b.owner = a.owner where a.id = $1 and b.id = $2",
        "select 1 from members a join members b on b.org = a.org
         where a.member = $1 and a.accepted_at is not null and b.member = $2 and b.accepted_at is not null limit 1",
        "select 1 from channel_members a join channel_members b on b.channel = a.channel
         where a.principal = $1 and a.left_at is null and a.accepted_at is not null
           and b.principal = $2 and b.left_at is null and b.accepted_at is not null limit 1",
    ];
    for sql in QUERIES {
        if tx
            .query_first(sql, &[SqlParam::id(agent), SqlParam::id(other)])
            .await?
            .is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) async fn list_blocks(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<Vec<ListedName>, DbError> {
    const SQL: &str = "select name, at from blocks where agent = $1 order by name";
    tx.query(SQL, &[SqlParam::id(agent)])
        .await?
        .into_iter()
        .map(ListedName::from_row)
        .collect()
}

/// Adds a block, if there is none of this name; returns since when there is one.
pub(crate) async fn insert_block(
    tx: &DbConnection<'_>,
    agent: AgentId,
    name: &str,
    now: UnixMicros,
) -> Result<UnixMicros, DbError> {
    const SQL: &str = "insert into blocks (agent, name, at) values ($1, $2, $3)
                       on conflict (agent, name) do update set at = blocks.at returning at";
    let params = [
        SqlParam::id(agent),
        SqlParam::Text(name),
        SqlParam::Int(now.0),
    ];
    let row = tx.query_first(SQL, &params).await?;
    Ok(UnixMicros(row.map_or(Ok(now.0), |row| row.int(0))?))
}

/// Removes a block; false when there was none.
pub(crate) async fn delete_block(
    tx: &DbConnection<'_>,
    agent: AgentId,
    name: &str,
) -> Result<bool, DbError> {
    const SQL: &str = "delete from blocks where agent = $1 and name = $2";
    Ok(tx
        .execute(SQL, &[SqlParam::id(agent), SqlParam::Text(name)])
        .await?
        == 1)
}

pub(crate) async fn count_blocks(tx: &DbConnection<'_>, agent: AgentId) -> Result<i64, DbError> {
    tx.query_first(
        "select count(*) from blocks where agent = $1",
        &[SqlParam::id(agent)],
    )
    .await?
    .map_or(Ok(0), |row| row.int(0))
}

/// The contacts that the agent has added and that are registered.
pub(crate) async fn list_contacts(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<Vec<ListedName>, DbError> {
    const SQL: &str =
        "select p.agent_id, c.at from contacts c join principals p on p.id = c.contact
                       where c.agent = $1 and p.deleted_at is null order by p.agent_id";
    tx.query(SQL, &[SqlParam::id(agent)])
        .await?
        .into_iter()
        .map(ListedName::from_row)
        .collect()
}

/// Adds a contact, if it is none; returns since when it is one.
pub(crate) async fn insert_contact(
    tx: &DbConnection<'_>,
    agent: AgentId,
    contact: AgentId,
    now: UnixMicros,
) -> Result<UnixMicros, DbError> {
    const SQL: &str = "insert into contacts (agent, contact, at) values ($1, $2, $3)
                       on conflict (agent, contact) do update set at = contacts.at returning at";
    let params = [
        SqlParam::id(agent),
        SqlParam::id(contact),
        SqlParam::Int(now.0),
    ];
    let row = tx.query_first(SQL, &params).await?;
    Ok(UnixMicros(row.map_or(Ok(now.0), |row| row.int(0))?))
}

/// Removes a contact; false when it was none.
pub(crate) async fn delete_contact(
    tx: &DbConnection<'_>,
    agent: AgentId,
    contact: AgentId,
) -> Result<bool, DbError> {
    const SQL: &str = "delete from contacts where agent = $1 and contact = $2";
    Ok(tx
        .execute(SQL, &[SqlParam::id(agent), SqlParam::id(contact)])
        .await?
        == 1)
}

pub(crate) async fn count_contacts(tx: &DbConnection<'_>, agent: AgentId) -> Result<i64, DbError> {
    tx.query_first(
        "select count(*) from contacts where agent = $1",
        &[SqlParam::id(agent)],
    )
    .await?
    .map_or(Ok(0), |row| row.int(0))
}

/// Records that the agent wrote to another.
pub(crate) async fn insert_correspondent(
    tx: &DbConnection<'_>,
    agent: AgentId,
    contact: AgentId,
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into correspondents (agent, contact) values ($1, $2) on conflict do nothing";
    tx.execute(SQL, &[SqlParam::id(agent), SqlParam::id(contact)])
        .await
        .map(drop)
}

/// The agents to which the agent has written, as far as its history goes. `indexed` is the last entry of the participant index;
/// the few entries after it are scanned.
pub(crate) async fn list_correspondents(
    tx: &DbConnection<'_>,
    agent: AgentId,
    indexed: LogSeq,
) -> Result<Vec<AgentId>, DbError> {
    const SQL: &str = "select distinct l.subject from parts i join log l on l.seq = i.seq where i.who = $1 and i.class = 1
                       union select distinct subject from log where seq > $2 and actor = $1 and kind = 'message'";
    tx.query(SQL, &[SqlParam::id(agent), SqlParam::id(indexed)])
        .await?
        .into_iter()
        .map(|row| row.id(0))
        .collect()
}

pub(crate) async fn set_contacts_only(
    tx: &DbConnection<'_>,
    agent: AgentId,
    contacts_only: bool,
) -> Result<(), DbError> {
    tx.execute(
        "update principals set contacts_only = $2 where id = $1",
        &[SqlParam::id(agent), SqlParam::Int(contacts_only.into())],
    )
    .await
    .map(drop)
}

/// Gives the limits of the agent a new version, or none if nothing limits it any more. Cached decisions are kept by version, so
/// a version is never used twice.
pub(crate) async fn renew_contact_limits(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<ContactLimits, DbError> {
    const NEXT: &str =
        "insert into settings (name, value) values ('contact_versions', 1)
                        on conflict (name) do update set value = settings.value + 1 returning value";
    const SET: &str = "update principals set contact_version =
                           case when contacts_only <> 0 or exists (select 1 from blocks b where b.agent = principals.id)
                                then cast($2 as bigint) else 0 end
                       where id = $1 returning contact_version, contacts_only";
    let next = tx.query_first(NEXT, &[]).await?;
    let version = next.map_or(Ok(1), |row| row.int(0))?;
    let params = [SqlParam::id(agent), SqlParam::Int(version)];
    let row = tx.query_first(SET, &params).await?;
    row.map(ContactLimits::from_row)
        .transpose()
        .map(Option::unwrap_or_default)
}

/// Deletes what an agent that unregisters has set, and what others have of it. Blocks of its name stay: the next agent of that
/// name would otherwise get past them.
pub(super) async fn delete_agent_contacts(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<(), DbError> {
    for sql in [
        "delete from blocks where agent = $1",
        "delete from contacts where agent = $1 or contact = $1",
        "delete from correspondents where agent = $1 or contact = $1",
    ] {
        tx.execute(sql, &[SqlParam::id(agent)]).await?;
    }
    Ok(())
}
