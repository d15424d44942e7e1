//! Agents and their names, owners and keys.

use super::{DbError, Param, Row, Tx};
use crate::identity::Agent;
use chorus_wire::time::Micros;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "select p.id, p.agent_id, p.handle, p.owner, o.name, p.card, p.endpoint, p.market, p.key_hash, p.registered_at
             from principals p join owners o on o.id = p.owner ",
            $rest
        )
    };
}

fn agent(mut row: Row) -> Result<Agent, DbError> {
    let key_hash = row.maybe_bytes(8)?.and_then(|bytes| bytes.try_into().ok());
    Ok(Agent {
        id: row.int(0)?,
        agent_id: row.text(1)?.into(),
        handle: row.maybe_text(2)?,
        owner: row.int(3)?,
        owner_name: row.text(4)?,
        card: row.maybe_text(5)?.map(Into::into),
        endpoint: row.maybe_text(6)?,
        market: row.maybe_text(7)?,
        key_hash,
        registered_at: Micros(row.int(9)?),
    })
}

/// The living agent of this canonical name.
pub(crate) async fn by_name(tx: &Tx<'_>, name: &str) -> Result<Option<Agent>, DbError> {
    const SQL: &str = select!("join names n on n.principal = p.id where n.name = $1");
    tx.one(SQL, &[Param::Text(name)])
        .await?
        .map(agent)
        .transpose()
}

/// The living agent whose key has this hash.
pub(crate) async fn by_key(tx: &Tx<'_>, hash: &[u8; 32]) -> Result<Option<Agent>, DbError> {
    const SQL: &str = select!("where p.key_hash = $1 and p.deleted_at is null");
    tx.one(SQL, &[Param::Bytes(hash)])
        .await?
        .map(agent)
        .transpose()
}

/// The living agent of this id.
pub(crate) async fn by_id(tx: &Tx<'_>, id: i64) -> Result<Option<Agent>, DbError> {
    const SQL: &str = select!("where p.id = $1 and p.deleted_at is null");
    tx.one(SQL, &[Param::Int(id)]).await?.map(agent).transpose()
}

/// Living agents in the order of their registration.
pub(crate) async fn list(tx: &Tx<'_>, after: i64, limit: usize) -> Result<Vec<Agent>, DbError> {
    const SQL: &str = select!("where p.deleted_at is null and p.id > $1 order by p.id limit $2");
    tx.query(SQL, &[Param::Int(after), Param::Int(limit as i64)])
        .await?
        .into_iter()
        .map(agent)
        .collect()
}

/// A new id from the one space that principals and whatever else can be a subject share.
pub(crate) async fn new_subject(tx: &Tx<'_>) -> Result<i64, DbError> {
    const SQL: &str = "insert into settings (name, value) values ('subjects', 1)
                       on conflict (name) do update set value = settings.value + 1 returning value";
    let row = tx.one(SQL, &[]).await?;
    row.ok_or_else(|| DbError::Other("no id was given".into()))?
        .int(0)
}

/// The owner of this name, if somebody has claimed it.
pub(crate) async fn owner(tx: &Tx<'_>, name: &str) -> Result<Option<i64>, DbError> {
    // PostgreSQL has no text with this in it, and would fail where nothing is found.
    if name.contains('\0') {
        return Ok(None);
    }
    let row = tx
        .one(
            "select id from owners where name = $1",
            &[Param::Text(name)],
        )
        .await?;
    row.map(|row| row.int(0)).transpose()
}

/// Claims a name that nobody has.
pub(crate) async fn claim_owner(tx: &Tx<'_>, name: &str) -> Result<i64, DbError> {
    const SQL: &str = "insert into owners (id, name) values ((select coalesce(max(id), 0) + 1 from owners), $1) returning id";
    let row = tx.one(SQL, &[Param::Text(name)]).await?;
    row.ok_or_else(|| DbError::Other("no owner was made".into()))?
        .int(0)
}

/// What an owner is called today.
pub(crate) async fn owner_name(tx: &Tx<'_>, owner: i64) -> Result<Option<String>, DbError> {
    let row = tx
        .one(
            "select name from owners where id = $1",
            &[Param::Int(owner)],
        )
        .await?;
    row.map(|mut row| row.text(0)).transpose()
}

/// The same owner under another name, which nobody has; its account is what it was.
pub(crate) async fn rename_owner(tx: &Tx<'_>, owner: i64, name: &str) -> Result<(), DbError> {
    tx.execute(
        "update owners set name = $2 where id = $1",
        &[Param::Int(owner), Param::Text(name)],
    )
    .await
    .map(drop)
}

/// The oldest other agent of the same owner.
pub(crate) async fn beside(tx: &Tx<'_>, agent: &Agent) -> Result<Option<String>, DbError> {
    const SQL: &str = "select agent_id from principals where owner = $1 and id <> $2 and deleted_at is null order by id limit 1";
    let row = tx
        .one(SQL, &[Param::Int(agent.owner), Param::Int(agent.id)])
        .await?;
    row.map(|mut row| row.text(0)).transpose()
}

/// Gives a name to an agent; false when it is taken.
pub(crate) async fn claim_name(tx: &Tx<'_>, name: &str, principal: i64) -> Result<bool, DbError> {
    const SQL: &str =
        "insert into names (name, principal) values ($1, $2) on conflict (name) do nothing";
    Ok(tx
        .execute(SQL, &[Param::Text(name), Param::Int(principal)])
        .await?
        == 1)
}

/// Inserts an agent; its names are claimed beside it.
pub(crate) async fn insert(tx: &Tx<'_>, agent: &Agent) -> Result<(), DbError> {
    const SQL: &str =
        "insert into principals (id, agent_id, handle, owner, card, endpoint, market, key_hash, registered_at)
                       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let params = [
        Param::Int(agent.id),
        Param::Text(&agent.agent_id),
        Param::text(agent.handle.as_deref()),
        Param::Int(agent.owner),
        Param::text(agent.card.as_deref()),
        Param::text(agent.endpoint.as_deref()),
        Param::text(agent.market.as_deref()),
        agent
            .key_hash
            .as_ref()
            .map_or(Param::Null, |hash| Param::Bytes(hash)),
        Param::Int(agent.registered_at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// Replaces what an agent may change of itself.
pub(crate) async fn update(tx: &Tx<'_>, agent: &Agent) -> Result<(), DbError> {
    const SQL: &str = "update principals set owner = $2, card = $3, endpoint = $4, market = $5, key_hash = $6 where id = $1";
    let params = [
        Param::Int(agent.id),
        Param::Int(agent.owner),
        Param::text(agent.card.as_deref()),
        Param::text(agent.endpoint.as_deref()),
        Param::text(agent.market.as_deref()),
        agent
            .key_hash
            .as_ref()
            .map_or(Param::Null, |hash| Param::Bytes(hash)),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// The agent is gone: its names are free, its key is dead, its row stays so that old messages keep their names.
pub(crate) async fn bury(tx: &Tx<'_>, agent: &Agent, now: Micros) -> Result<(), DbError> {
    let id = Param::Int(agent.id);
    tx.execute("delete from names where principal = $1", &[id])
        .await?;
    super::sessions::revoke(tx, agent.id).await?;
    super::connections::revoke(tx, agent.id).await?;
    const SQL: &str = "update principals set card = null, endpoint = null, market = null, key_hash = null, deleted_at = $2 where id = $1";
    tx.execute(SQL, &[id, Param::Int(now.0)]).await?;
    if *agent.owner_name == *agent.agent_id {
        // It owned itself: whoever takes the name next is another owner, with an account of its own (D-97). Those that belong to
        // it besides go on under the name of the oldest; of nobody's, with a character that no owner_id can have.
        let name = match beside(tx, agent).await? {
            Some(heir) if owner(tx, &heir).await?.is_none() => heir,
            Some(_) | None => format!("\u{1}{} {}", agent.owner, agent.owner_name),
        };
        rename_owner(tx, agent.owner, &name).await?;
    }
    Ok(())
}
