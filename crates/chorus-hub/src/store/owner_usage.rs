//! What each owner uses of its quotas (R-95, D-107).

use super::sql_dialect::{InsertSelect, insert_select};
use super::{AgentId, DbConnection, DbError, LogSeq, OwnerId, SqlParam};
use chorus_wire::limits::STORED_ENTRY_BYTES;

/// Adds the octets of the entries after $1 and up to $2, times $4, to their writers.
/// `materialized`: otherwise SQLite sorts the bodies, not their lengths, to group them.
const COUNT_ENTRIES: InsertSelect = insert_select!(
    "stored_bytes (writer, octets)
    with entries as materialized (
        select case when actor = 0 then subject else actor end as writer,
               octet_length(body) + cast($3 as bigint) as octets from log
        where seq > $1 and seq <= $2 and (actor <> 0 or kind = 'channel'))
    select writer, cast(sum(octets) as bigint) * cast($4 as bigint) from entries where true group by writer
    on conflict (writer) do update set octets = stored_bytes.octets + excluded.octets"
);

/// Counts the entries that the participant index takes.
pub(super) async fn count_indexed_entries(
    tx: &DbConnection<'_>,
    after: LogSeq,
    last: LogSeq,
) -> Result<(), DbError> {
    add_entries(tx, after, last, 1).await
}

/// Uncounts the entries up to `last`, which are about to be trimmed. All of them are indexed.
pub(super) async fn uncount_trimmed_entries(
    tx: &DbConnection<'_>,
    last: LogSeq,
) -> Result<(), DbError> {
    add_entries(tx, LogSeq::START, last, -1).await
}

async fn add_entries(
    tx: &DbConnection<'_>,
    after: LogSeq,
    last: LogSeq,
    factor: i64,
) -> Result<(), DbError> {
    let params = [
        SqlParam::id(after),
        SqlParam::id(last),
        SqlParam::Int(STORED_ENTRY_BYTES as i64),
        SqlParam::Int(factor),
    ];
    tx.execute(COUNT_ENTRIES.sql(tx), &params).await.map(drop)
}

/// The channels of the agents of the owner $1.
macro_rules! owned_channels {
    () => {
        "(select c.id from channels c join principals p on p.id = c.owner where p.owner = $1 and c.deleted_at is null)"
    };
}

/// The octets that the owner stores: entries and open items of its agents, entries of the members of its channels
/// that are reached by a connection string, and the artifacts and files of its channels.
pub(crate) async fn sum_stored_bytes(
    tx: &DbConnection<'_>,
    owner: OwnerId,
) -> Result<u64, DbError> {
    const SQL: &str = concat!(
        "select cast(
            coalesce((select sum(s.octets) from stored_bytes s join principals p on p.id = s.writer where p.owner = $1), 0)
          + coalesce((select sum(s.octets) from channel_members m join stored_bytes s on s.writer = m.id
                      where m.principal is null and m.channel in ",
        owned_channels!(),
        "), 0)
          + coalesce((select sum(octet_length(v.content)) from artifact_versions v where v.channel in ",
        owned_channels!(),
        "), 0)
          + coalesce((select sum(octet_length(o.frame)) from open_items o join principals p on p.id = o.sender
                      where p.owner = $1), 0)
          + coalesce((select sum(f.size) from channel_files f where f.channel in ",
        owned_channels!(),
        "), 0) as bigint)"
    );
    count(tx, SQL, owner).await
}

/// Channels that agents of the owner own.
pub(crate) async fn count_owner_channels(
    tx: &DbConnection<'_>,
    owner: OwnerId,
) -> Result<u64, DbError> {
    const SQL: &str = concat!("select count(*) from ", owned_channels!(), " o");
    count(tx, SQL, owner).await
}

/// Members of those channels.
pub(crate) async fn count_owner_members(
    tx: &DbConnection<'_>,
    owner: OwnerId,
) -> Result<u64, DbError> {
    const SQL: &str = concat!(
        "select count(*) from channel_members where left_at is null and channel in ",
        owned_channels!()
    );
    count(tx, SQL, owner).await
}

/// Artifacts and files of those channels.
pub(crate) async fn count_owner_artifacts(
    tx: &DbConnection<'_>,
    owner: OwnerId,
) -> Result<u64, DbError> {
    const SQL: &str = concat!(
        "select (select count(*) from artifacts where channel in ",
        owned_channels!(),
        ") + (select count(*) from channel_files where channel in ",
        owned_channels!(),
        ")"
    );
    count(tx, SQL, owner).await
}

/// Jobs that the owner pays for and that have not ended.
pub(crate) async fn count_open_jobs(tx: &DbConnection<'_>, owner: OwnerId) -> Result<u64, DbError> {
    const SQL: &str = "select count(*) from jobs where payer = $1 and ended_at is null";
    count(tx, SQL, owner).await
}

async fn count(tx: &DbConnection<'_>, sql: &'static str, owner: OwnerId) -> Result<u64, DbError> {
    let row = tx.query_first(sql, &[SqlParam::id(owner)]).await?;
    Ok(row.map_or(Ok(0), |row| row.int(0))?.max(0) as u64)
}

/// The owner of an agent, also of one that has unregistered.
pub(crate) async fn find_agent_owner(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<Option<OwnerId>, DbError> {
    let found = tx
        .query_first(
            "select owner from principals where id = $1",
            &[SqlParam::id(agent)],
        )
        .await?;
    found.map(|row| row.id(0)).transpose()
}
