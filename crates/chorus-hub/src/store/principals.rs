//! Agents with their names and keys, and the owners of agents.

use super::{
    Agent, AgentId, ColumnReader, ContactLimits, DbConnection, DbError, FromRow, OwnerId, RowId,
    SqlParam, SubjectId,
};
use chorus_wire::time::UnixMicros;

macro_rules! select_agents {
    ($rest:literal) => {
        concat!(
            "select p.id, p.agent_id, p.handle, p.owner, o.name, p.card, p.endpoint, p.endpoint_secret, p.market, p.key_hash, p.registered_at,
                    p.contact_version, p.contacts_only
             from principals p join owners o on o.id = p.owner ",
            $rest
        )
    };
}

/// Reads the columns of `select_agents!`.
impl FromRow for Agent {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(Agent {
            id: columns.id()?,
            agent_id: columns.text()?.into(),
            handle: columns.maybe_text()?,
            owner: columns.id()?,
            owner_name: columns.text()?,
            card: columns.maybe_text()?.map(Into::into),
            endpoint: columns.maybe_text()?,
            sealed_endpoint_secret: columns.maybe_bytes()?.map(Into::into),
            market: columns.maybe_text()?,
            key_hash: columns
                .maybe_bytes()?
                .and_then(|bytes| bytes.try_into().ok()),
            registered_at: UnixMicros(columns.int()?),
            contact_limits: ContactLimits::from_columns(columns)?,
        })
    }
}

/// Reads `contact_version, contacts_only`.
impl FromRow for ContactLimits {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(ContactLimits {
            version: columns.int()?,
            contacts_only: columns.int()? != 0,
        })
    }
}

/// The registered agent of this canonical name.
pub(crate) async fn find_agent_by_name(
    tx: &DbConnection<'_>,
    name: &str,
) -> Result<Option<Agent>, DbError> {
    const SQL: &str = select_agents!("join names n on n.principal = p.id where n.name = $1");
    tx.query_first(SQL, &[SqlParam::Text(name)])
        .await?
        .map(Agent::from_row)
        .transpose()
}

/// The registered agent whose key has this hash.
pub(crate) async fn find_agent_by_key_hash(
    tx: &DbConnection<'_>,
    hash: &[u8; 32],
) -> Result<Option<Agent>, DbError> {
    const SQL: &str = select_agents!("where p.key_hash = $1 and p.deleted_at is null");
    tx.query_first(SQL, &[SqlParam::Bytes(hash)])
        .await?
        .map(Agent::from_row)
        .transpose()
}

/// The registered agent of this id.
pub(crate) async fn find_agent(
    tx: &DbConnection<'_>,
    id: AgentId,
) -> Result<Option<Agent>, DbError> {
    const SQL: &str = select_agents!("where p.id = $1 and p.deleted_at is null");
    tx.query_first(SQL, &[SqlParam::id(id)])
        .await?
        .map(Agent::from_row)
        .transpose()
}

/// The registered agents, in the order of their registration.
pub(crate) async fn list_agents(
    tx: &DbConnection<'_>,
    after: AgentId,
    limit: usize,
) -> Result<Vec<Agent>, DbError> {
    const SQL: &str =
        select_agents!("where p.deleted_at is null and p.id > $1 order by p.id limit $2");
    tx.query(SQL, &[SqlParam::id(after), SqlParam::Int(limit as i64)])
        .await?
        .into_iter()
        .map(Agent::from_row)
        .collect()
}

/// Allocates a subject id. Agents, organisations, channels and members share one id space.
pub(crate) async fn allocate_subject_id<I: RowId + Into<SubjectId>>(
    tx: &DbConnection<'_>,
) -> Result<I, DbError> {
    const SQL: &str = "insert into settings (name, value) values ('subjects', 1)
                       on conflict (name) do update set value = settings.value + 1 returning value";
    let row = tx.query_first(SQL, &[]).await?;
    row.ok_or_else(|| DbError::Other("no id was given".into()))?
        .id(0)
}

/// The id of the owner of this name.
pub(crate) async fn find_owner_id(
    tx: &DbConnection<'_>,
    name: &str,
) -> Result<Option<OwnerId>, DbError> {
    // PostgreSQL rejects a text with a NUL character; no stored name contains one.
    if name.contains('\0') {
        return Ok(None);
    }
    let row = tx
        .query_first(
            "select id from owners where name = $1",
            &[SqlParam::Text(name)],
        )
        .await?;
    row.map(|row| row.id(0)).transpose()
}

/// Creates an owner; its name must be free.
pub(crate) async fn create_owner(tx: &DbConnection<'_>, name: &str) -> Result<OwnerId, DbError> {
    const SQL: &str = "insert into owners (id, name) values ((select coalesce(max(id), 0) + 1 from owners), $1) returning id";
    let row = tx.query_first(SQL, &[SqlParam::Text(name)]).await?;
    row.ok_or_else(|| DbError::Other("no owner was made".into()))?
        .id(0)
}

/// The current name of an owner.
pub(crate) async fn find_owner_name(
    tx: &DbConnection<'_>,
    owner: OwnerId,
) -> Result<Option<String>, DbError> {
    let row = tx
        .query_first(
            "select name from owners where id = $1",
            &[SqlParam::id(owner)],
        )
        .await?;
    row.map(|mut row| row.text(0)).transpose()
}

/// Renames an owner; the new name must be free. The account stays the same.
pub(crate) async fn rename_owner(
    tx: &DbConnection<'_>,
    owner: OwnerId,
    name: &str,
) -> Result<(), DbError> {
    tx.execute(
        "update owners set name = $2 where id = $1",
        &[SqlParam::id(owner), SqlParam::Text(name)],
    )
    .await
    .map(drop)
}

/// The name of the oldest other agent of the same owner.
pub(crate) async fn find_oldest_sibling(
    tx: &DbConnection<'_>,
    agent: &Agent,
) -> Result<Option<String>, DbError> {
    const SQL: &str = "select agent_id from principals where owner = $1 and id <> $2 and deleted_at is null order by id limit 1";
    let row = tx
        .query_first(SQL, &[SqlParam::id(agent.owner), SqlParam::id(agent.id)])
        .await?;
    row.map(|mut row| row.text(0)).transpose()
}

/// Claims a name for an agent or organisation; false when it is taken.
pub(crate) async fn claim_name(
    tx: &DbConnection<'_>,
    name: &str,
    principal: SubjectId,
) -> Result<bool, DbError> {
    const SQL: &str =
        "insert into names (name, principal) values ($1, $2) on conflict (name) do nothing";
    Ok(tx
        .execute(SQL, &[SqlParam::Text(name), SqlParam::id(principal)])
        .await?
        == 1)
}

/// Inserts an agent; the caller also claims its names.
pub(crate) async fn insert_agent(tx: &DbConnection<'_>, agent: &Agent) -> Result<(), DbError> {
    const SQL: &str =
        "insert into principals (id, agent_id, handle, owner, card, endpoint, endpoint_secret, market, key_hash, registered_at)
                       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let params = [
        SqlParam::id(agent.id),
        SqlParam::Text(&agent.agent_id),
        SqlParam::optional_text(agent.handle.as_deref()),
        SqlParam::id(agent.owner),
        SqlParam::optional_text(agent.card.as_deref()),
        SqlParam::optional_text(agent.endpoint.as_deref()),
        SqlParam::optional_bytes(agent.sealed_endpoint_secret.as_deref()),
        SqlParam::optional_text(agent.market.as_deref()),
        agent
            .key_hash
            .as_ref()
            .map_or(SqlParam::Null, |hash| SqlParam::Bytes(hash)),
        SqlParam::Int(agent.registered_at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// Stores what an agent may change of itself.
pub(crate) async fn update_agent(tx: &DbConnection<'_>, agent: &Agent) -> Result<(), DbError> {
    const SQL: &str = "update principals set owner = $2, card = $3, endpoint = $4, endpoint_secret = $5, market = $6, key_hash = $7 where id = $1";
    let params = [
        SqlParam::id(agent.id),
        SqlParam::id(agent.owner),
        SqlParam::optional_text(agent.card.as_deref()),
        SqlParam::optional_text(agent.endpoint.as_deref()),
        SqlParam::optional_bytes(agent.sealed_endpoint_secret.as_deref()),
        SqlParam::optional_text(agent.market.as_deref()),
        agent
            .key_hash
            .as_ref()
            .map_or(SqlParam::Null, |hash| SqlParam::Bytes(hash)),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// Marks an agent as deleted: frees its names and revokes its key and tokens. The row stays, so that old messages keep the name.
pub(crate) async fn mark_agent_deleted(
    tx: &DbConnection<'_>,
    agent: &Agent,
    now: UnixMicros,
) -> Result<(), DbError> {
    let id = SqlParam::id(agent.id);
    tx.execute("delete from names where principal = $1", &[id])
        .await?;
    super::session_tokens::revoke_all_session_tokens(tx, agent.id).await?;
    super::agent_keys::delete_agent_keys(tx, agent.id).await?;
    super::key_rotations::forget_rotation(tx, agent.id).await?;
    super::channel_tokens::expire_callbacks_made_by(tx, agent.id, now).await?;
    super::connection_strings::revoke_connection_string(tx, agent.id).await?;
    super::contacts::delete_agent_contacts(tx, agent.id).await?;
    const SQL: &str = "update principals set card = null, endpoint = null, endpoint_secret = null, market = null, key_hash = null, deleted_at = $2 where id = $1";
    tx.execute(SQL, &[id, SqlParam::Int(now.0)]).await?;
    if agent.owns_itself() {
        // The agent owned itself: the next agent with this name is another owner with its own account (D-97). Other agents of
        // this owner continue under the name of the oldest of them. Without one, the name gets a character that no owner_id has.
        let name = match find_oldest_sibling(tx, agent).await? {
            Some(heir) if find_owner_id(tx, &heir).await?.is_none() => heir,
            Some(_) | None => format!("\u{1}{} {}", agent.owner, agent.owner_name),
        };
        rename_owner(tx, agent.owner, &name).await?;
    }
    Ok(())
}
