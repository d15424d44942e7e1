//! Rooms and their members as they are kept; what is said in a room is in the log, under its id.

use super::log::{self, EntryPage, LogEntry};
use super::{DbConnection, DbError, SqlParam, SqlRow, channel_deliveries};
use chorus_wire::channel::channels::{DeliveryMode, MemberRoute};
use chorus_wire::{limits, time::UnixMicros};
use std::sync::Arc;

/// A room that is there.
#[derive(Clone, Debug)]
pub(crate) struct ChannelRecord {
    /// Its subject in the log.
    pub id: i64,
    /// `ch_…`, which never changes (CHN-07).
    pub public_id: Arc<str>,
    pub name: String,
    pub service: Option<String>,
    pub context: Option<String>,
    /// Null: operators.
    pub owner: Option<i64>,
    pub owner_name: Option<String>,
    pub member_count: i64,
    pub created_at: UnixMicros,
}

macro_rules! rooms {
    ($rest:literal) => {
        concat!(
            "select c.id, c.public_id, c.name, c.service, c.context, c.owner, p.agent_id,
                    (select count(*) from channel_members m where m.channel = c.id and m.left_at is null), c.created_at
             from channels c left join principals p on p.id = c.owner where c.deleted_at is null ",
            $rest
        )
    };
}

fn read_channel_row(mut row: SqlRow) -> Result<ChannelRecord, DbError> {
    Ok(ChannelRecord {
        id: row.int(0)?,
        public_id: row.text(1)?.into(),
        name: row.text(2)?,
        service: row.maybe_text(3)?,
        context: row.maybe_text(4)?,
        owner: row.maybe_int(5)?,
        owner_name: row.maybe_text(6)?,
        member_count: row.int(7)?,
        created_at: UnixMicros(row.int(8)?),
    })
}

pub(crate) async fn insert_channel(
    tx: &DbConnection<'_>,
    channel: &ChannelRecord,
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into channels (id, public_id, name, service, context, owner, created_at)
                       values ($1, $2, $3, $4, $5, $6, $7)";
    let params = [
        SqlParam::Int(channel.id),
        SqlParam::Text(&channel.public_id),
        SqlParam::Text(&channel.name),
        SqlParam::optional_text(channel.service.as_deref()),
        SqlParam::optional_text(channel.context.as_deref()),
        SqlParam::optional_int(channel.owner),
        SqlParam::Int(channel.created_at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// The room of this public id, unless it is deleted.
pub(crate) async fn find_channel_by_public_id(
    tx: &DbConnection<'_>,
    id: &str,
) -> Result<Option<ChannelRecord>, DbError> {
    // PostgreSQL has no text with this in it, and would fail where nothing is found.
    if id.contains('\0') {
        return Ok(None);
    }
    tx.query_first(rooms!("and c.public_id = $1"), &[SqlParam::Text(id)])
        .await?
        .map(read_channel_row)
        .transpose()
}

/// The room of this subject, unless it is deleted.
pub(crate) async fn find_channel(
    tx: &DbConnection<'_>,
    id: i64,
) -> Result<Option<ChannelRecord>, DbError> {
    tx.query_first(rooms!("and c.id = $1"), &[SqlParam::Int(id)])
        .await?
        .map(read_channel_row)
        .transpose()
}

/// Whether the room of this subject has, or had, this public id; a deleted one is remembered.
pub(crate) async fn has_public_id(
    tx: &DbConnection<'_>,
    id: i64,
    public_id: &str,
) -> Result<bool, DbError> {
    const SQL: &str = "select 1 from channels where id = $1 and public_id = $2";
    Ok(tx
        .query_first(SQL, &[SqlParam::Int(id), SqlParam::Text(public_id)])
        .await?
        .is_some())
}

/// Rooms that this agent is in, or all of them, in the order in which they were made.
pub(crate) async fn list_channels(
    tx: &DbConnection<'_>,
    principal: Option<i64>,
    after: i64,
    limit: usize,
) -> Result<Vec<ChannelRecord>, DbError> {
    const MINE: &str = rooms!(
        "and c.id in (select channel from channel_members where principal = $3 and left_at is null and channel > $1
                      order by channel limit $2) order by c.id"
    );
    const ALL: &str = rooms!("and c.id > $1 order by c.id limit $2");
    let (after, limit) = (SqlParam::Int(after), SqlParam::Int(limit as i64));
    let rows = match principal {
        Some(principal) => {
            tx.query(MINE, &[after, limit, SqlParam::Int(principal)])
                .await?
        }
        None => tx.query(ALL, &[after, limit]).await?,
    };
    rows.into_iter().map(read_channel_row).collect()
}

pub(crate) async fn count_owned_channels(
    tx: &DbConnection<'_>,
    owner: i64,
) -> Result<i64, DbError> {
    const SQL: &str = "select count(*) from channels where owner = $1 and deleted_at is null";
    tx.query_first(SQL, &[SqlParam::Int(owner)])
        .await?
        .map_or(Ok(0), |row| row.int(0))
}

/// Its name, service and context as they are in `room`.
pub(crate) async fn update_channel(
    tx: &DbConnection<'_>,
    channel: &ChannelRecord,
) -> Result<(), DbError> {
    const SQL: &str = "update channels set name = $2, service = $3, context = $4 where id = $1";
    let (service, context) = (
        SqlParam::optional_text(channel.service.as_deref()),
        SqlParam::optional_text(channel.context.as_deref()),
    );
    tx.execute(
        SQL,
        &[
            SqlParam::Int(channel.id),
            SqlParam::Text(&channel.name),
            service,
            context,
        ],
    )
    .await
    .map(drop)
}

/// The room is gone, and with it everybody's place in it and every secret that it was told.
pub(crate) async fn mark_channel_deleted(
    tx: &DbConnection<'_>,
    id: i64,
    now: UnixMicros,
) -> Result<(), DbError> {
    const MEMBERS: &str =
        "update channel_members set left_at = $2, connection = null, signing = null
                           where channel = $1 and left_at is null";
    let params = [SqlParam::Int(id), SqlParam::Int(now.0)];
    tx.execute(MEMBERS, &params).await?;
    channel_deliveries::end_channel_deliveries(tx, id, now).await?;
    tx.execute("update channels set deleted_at = $2 where id = $1", &params)
        .await
        .map(drop)
}

/// The owner is gone: the room is the operators' now.
pub(crate) async fn clear_channel_owner(tx: &DbConnection<'_>, owner: i64) -> Result<(), DbError> {
    const SQL: &str = "update channels set owner = null where owner = $1 and deleted_at is null";
    tx.execute(SQL, &[SqlParam::Int(owner)]).await.map(drop)
}

/// Somebody in a room, or who was there.
#[derive(Clone, Debug)]
pub(crate) struct ChannelMemberRecord {
    pub id: i64,
    /// The room's subject.
    pub channel: i64,
    pub name: String,
    pub principal: Option<i64>,
    /// The name of that agent.
    pub agent_id: Option<Arc<str>>,
    pub via: MemberRoute,
    pub deliver: DeliveryMode,
    /// Sealed.
    pub sealed_connection: Option<Vec<u8>>,
    /// Sealed.
    pub sealed_signing_secret: Option<Vec<u8>>,
    pub status: Option<(String, UnixMicros)>,
    /// JSON.
    pub identity: Option<String>,
    pub unreachable_at: Option<UnixMicros>,
    /// Steps from agent to agent before what it heard last.
    pub turn: i64,
    pub joined_at: UnixMicros,
    pub left_at: Option<UnixMicros>,
}

macro_rules! members {
    ($rest:literal) => {
        concat!(
            "select m.id, m.channel, m.name, m.principal, p.agent_id, m.via, m.deliver, m.connection, m.signing, m.status,
                    m.status_at, m.identity, m.unreachable_at, m.turn, m.joined_at, m.left_at
             from channel_members m left join principals p on p.id = m.principal ",
            $rest
        )
    };
}

fn read_member_row(mut row: SqlRow) -> Result<ChannelMemberRecord, DbError> {
    let (via, deliver) = (row.text(5)?, row.text(6)?);
    let unknown_value =
        |what: &str| DbError::Other(format!("a member is reached in a newer hub's way: {what}"));
    Ok(ChannelMemberRecord {
        id: row.int(0)?,
        channel: row.int(1)?,
        name: row.text(2)?,
        principal: row.maybe_int(3)?,
        agent_id: row.maybe_text(4)?.map(Into::into),
        via: MemberRoute::parse(&via).ok_or_else(|| unknown_value(&via))?,
        deliver: DeliveryMode::parse(&deliver).ok_or_else(|| unknown_value(&deliver))?,
        sealed_connection: row.maybe_bytes(7)?,
        sealed_signing_secret: row.maybe_bytes(8)?,
        status: row.maybe_text(9)?.zip(row.maybe_int(10)?.map(UnixMicros)),
        identity: row.maybe_text(11)?,
        unreachable_at: row.maybe_int(12)?.map(UnixMicros),
        turn: row.int(13)?,
        joined_at: UnixMicros(row.int(14)?),
        left_at: row.maybe_int(15)?.map(UnixMicros),
    })
}

/// Takes a place in the room; false when the name is taken there, or the agent is in it already.
pub(crate) async fn insert_member(
    tx: &DbConnection<'_>,
    member: &ChannelMemberRecord,
    folded_name: &str,
) -> Result<bool, DbError> {
    const SQL: &str =
        "insert into channel_members (id, channel, name, folded, principal, via, deliver, connection, signing, turn,
                                                    joined_at)
                       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) on conflict do nothing";
    let params = [
        SqlParam::Int(member.id),
        SqlParam::Int(member.channel),
        SqlParam::Text(&member.name),
        SqlParam::Text(folded_name),
        SqlParam::optional_int(member.principal),
        SqlParam::Text(member.via.as_str()),
        SqlParam::Text(member.deliver.as_str()),
        member
            .sealed_connection
            .as_deref()
            .map_or(SqlParam::Null, SqlParam::Bytes),
        member
            .sealed_signing_secret
            .as_deref()
            .map_or(SqlParam::Null, SqlParam::Bytes),
        SqlParam::Int(member.turn),
        SqlParam::Int(member.joined_at.0),
    ];
    Ok(tx.execute(SQL, &params).await? == 1)
}

/// Everybody in the room, in the order in which they came.
pub(crate) async fn list_members(
    tx: &DbConnection<'_>,
    channel: i64,
) -> Result<Vec<ChannelMemberRecord>, DbError> {
    const SQL: &str = members!("where m.channel = $1 and m.left_at is null order by m.id");
    tx.query(SQL, &[SqlParam::Int(channel)])
        .await?
        .into_iter()
        .map(read_member_row)
        .collect()
}

/// Whoever is called so in the room.
pub(crate) async fn find_member_by_name(
    tx: &DbConnection<'_>,
    channel: i64,
    folded_name: &str,
) -> Result<Option<ChannelMemberRecord>, DbError> {
    // PostgreSQL has no text with this in it, and would fail where nothing is found.
    if folded_name.contains('\0') {
        return Ok(None);
    }
    const SQL: &str = members!("where m.channel = $1 and m.folded = $2 and m.left_at is null");
    tx.query_first(SQL, &[SqlParam::Int(channel), SqlParam::Text(folded_name)])
        .await?
        .map(read_member_row)
        .transpose()
}

/// This agent's place in the room.
pub(crate) async fn find_member_by_agent(
    tx: &DbConnection<'_>,
    channel: i64,
    principal: i64,
) -> Result<Option<ChannelMemberRecord>, DbError> {
    const SQL: &str = members!("where m.channel = $1 and m.principal = $2 and m.left_at is null");
    tx.query_first(SQL, &[SqlParam::Int(channel), SqlParam::Int(principal)])
        .await?
        .map(read_member_row)
        .transpose()
}

/// The member of this id, also when it has left.
pub(crate) async fn member_by_id(
    tx: &DbConnection<'_>,
    id: i64,
) -> Result<Option<ChannelMemberRecord>, DbError> {
    tx.query_first(members!("where m.id = $1"), &[SqlParam::Int(id)])
        .await?
        .map(read_member_row)
        .transpose()
}

/// Every place that this agent has.
pub(crate) async fn list_memberships(
    tx: &DbConnection<'_>,
    principal: i64,
) -> Result<Vec<ChannelMemberRecord>, DbError> {
    const SQL: &str = members!("where m.principal = $1 and m.left_at is null order by m.id");
    tx.query(SQL, &[SqlParam::Int(principal)])
        .await?
        .into_iter()
        .map(read_member_row)
        .collect()
}

/// It is in the room no more, and what it was reached by is forgotten; false when it had gone before.
pub(crate) async fn mark_member_left(
    tx: &DbConnection<'_>,
    id: i64,
    now: UnixMicros,
) -> Result<bool, DbError> {
    const SQL: &str = "update channel_members set left_at = $2, connection = null, signing = null
                       where id = $1 and left_at is null";
    channel_deliveries::end_member_deliveries(tx, id, now).await?;
    Ok(tx
        .execute(SQL, &[SqlParam::Int(id), SqlParam::Int(now.0)])
        .await?
        == 1)
}

/// What it says it is doing; nothing takes it away.
pub(crate) async fn set_status(
    tx: &DbConnection<'_>,
    id: i64,
    status: Option<&str>,
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "update channel_members set status = $2, status_at = $3 where id = $1";
    tx.execute(
        SQL,
        &[
            SqlParam::Int(id),
            SqlParam::optional_text(status),
            SqlParam::Int(now.0),
        ],
    )
    .await
    .map(drop)
}

/// How it presents itself, as JSON.
pub(crate) async fn set_identity(
    tx: &DbConnection<'_>,
    id: i64,
    identity: &str,
) -> Result<(), DbError> {
    const SQL: &str = "update channel_members set identity = $2 where id = $1";
    tx.execute(SQL, &[SqlParam::Int(id), SqlParam::Text(identity)])
        .await
        .map(drop)
}

/// Marks it as unreachable since then, or as reachable; false when it was marked so already.
pub(crate) async fn set_unreachable(
    tx: &DbConnection<'_>,
    id: i64,
    since: Option<UnixMicros>,
) -> Result<bool, DbError> {
    const MARK: &str =
        "update channel_members set unreachable_at = $2 where id = $1 and unreachable_at is null";
    const CLEAR: &str = "update channel_members set unreachable_at = null where id = $1 and unreachable_at is not null";
    let changed = match since {
        Some(since) => {
            tx.execute(MARK, &[SqlParam::Int(id), SqlParam::Int(since.0)])
                .await?
        }
        None => tx.execute(CLEAR, &[SqlParam::Int(id)]).await?,
    };
    Ok(changed == 1)
}

/// What it heard last was this many steps from a person's word.
pub(crate) async fn set_turn(tx: &DbConnection<'_>, id: i64, turn: i64) -> Result<(), DbError> {
    const SQL: &str = "update channel_members set turn = $2 where id = $1";
    tx.execute(SQL, &[SqlParam::Int(id), SqlParam::Int(turn)])
        .await
        .map(drop)
}

/// A tool call that a result may come for.
pub(crate) async fn record_tool_call(
    tx: &DbConnection<'_>,
    member: i64,
    call_id: &str,
    seq: i64,
) -> Result<(), DbError> {
    const SQL: &str = "insert into channel_calls (member, call_id, seq) values ($1, $2, $3)
                       on conflict (member, call_id) do update set seq = excluded.seq";
    tx.execute(
        SQL,
        &[
            SqlParam::Int(member),
            SqlParam::Text(call_id),
            SqlParam::Int(seq),
        ],
    )
    .await
    .map(drop)
}

/// Where the call of this id is.
pub(crate) async fn find_tool_call_seq(
    tx: &DbConnection<'_>,
    member: i64,
    call_id: &str,
) -> Result<Option<i64>, DbError> {
    const SQL: &str = "select seq from channel_calls where member = $1 and call_id = $2";
    let row = tx
        .query_first(SQL, &[SqlParam::Int(member), SqlParam::Text(call_id)])
        .await?;
    row.map(|row| row.int(0)).transpose()
}

/// The line at this place, if it is one of a room.
pub(crate) async fn find_channel_entry(
    tx: &DbConnection<'_>,
    seq: i64,
) -> Result<Option<LogEntry>, DbError> {
    const SQL: &str = "
        select l.seq, l.subject, l.kind, l.actor, '', l.at, l.body, l.via, l.delivered_at, c.public_id
        from log l join channels c on c.id = l.subject where l.seq = $1";
    tx.query_first(SQL, &[SqlParam::Int(seq)])
        .await?
        .map(log::read_entry_row)
        .transpose()
}

/// The newest lines that a member is owed, newest first, as many as a delivery may have room for.
pub(crate) async fn list_undelivered_entries(
    tx: &DbConnection<'_>,
    member: i64,
    limit: usize,
) -> Result<Vec<LogEntry>, DbError> {
    const SQL: &str = "
        select l.seq, l.subject, l.kind, l.actor, '', l.at, l.body, l.via, l.delivered_at, ''
        from deliveries d join log l on l.seq = d.seq where d.member = $1 order by d.seq desc limit $2";
    let params = [SqlParam::Int(member), SqlParam::Int(limit as i64)];
    // A line has more in it than what of it is delivered.
    Ok(
        log::read_page(tx, SQL, &params, limit, 2 * limits::BACKLOG_BYTES)
            .await?
            .entries,
    )
}

macro_rules! before {
    ($parts:literal, $tail:literal) => {
        concat!(
            "select l.seq, l.subject, l.kind, l.actor, '', l.at, l.body, l.via, l.delivered_at, '' from log l
             where l.seq in (
                 select seq from (select x.seq from parts x ",
            $parts,
            " where x.who = $1 and x.class = 2 and x.seq < $2 order by x.seq desc limit $3) r
                 union all
                 select seq from (select seq from log where seq > $4 and seq < $2 and subject = $1 ",
            $tail,
            " order by seq desc limit $3) t)
             order by l.seq desc limit $3"
        )
    };
}

/// The last lines before a place, oldest first: everything, or only what was said.
pub(crate) async fn list_entries_before(
    tx: &DbConnection<'_>,
    channel: i64,
    before_seq: i64,
    indexed_seq: i64,
    only_messages: bool,
    limit: usize,
) -> Result<EntryPage, DbError> {
    const ALL: &str = before!("", "");
    const MESSAGES_ONLY: &str = before!(
        "join log k on k.seq = x.seq and k.kind = 'said'",
        "and kind = 'said'"
    );
    let params = [
        SqlParam::Int(channel),
        SqlParam::Int(before_seq),
        SqlParam::Int(limit as i64),
        SqlParam::Int(indexed_seq),
    ];
    let sql = if only_messages { MESSAGES_ONLY } else { ALL };
    let mut page = log::read_page(tx, sql, &params, limit, limits::HISTORY_PAGE_BYTES).await?;
    page.entries.reverse();
    Ok(page)
}

/// Forgets some rooms and members that went before `keep`; how many there were.
pub(super) async fn trim_deleted_channels(
    tx: &DbConnection<'_>,
    keep_since: UnixMicros,
    limit: i64,
) -> Result<u64, DbError> {
    const MEMBERS: &str = "delete from channel_members where id in (
                               select id from channel_members where left_at < $1 order by left_at limit $2)";
    const CHANNELS: &str = "delete from channels where id in (
                             select id from channels where deleted_at < $1 order by deleted_at limit $2)";
    let params = [SqlParam::Int(keep_since.0), SqlParam::Int(limit)];
    Ok(tx.execute(MEMBERS, &params).await? + tx.execute(CHANNELS, &params).await?)
}

/// Calls that are about to be trimmed from the log.
pub(super) async fn delete_tool_calls(tx: &DbConnection<'_>, last_seq: i64) -> Result<(), DbError> {
    tx.execute(
        "delete from channel_calls where seq <= $1",
        &[SqlParam::Int(last_seq)],
    )
    .await
    .map(drop)
}
