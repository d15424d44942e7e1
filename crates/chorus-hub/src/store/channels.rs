//! The tables of channels and their members. The messages of a channel are log entries with the channel's id as subject.

use super::{
    AgentId, ChannelId, ColumnReader, DbConnection, DbError, FromRow, MemberId, OwnerId, SqlParam,
    channel_deliveries,
};
use chorus_wire::channel::channels::{DeliveryMode, MemberRoute};
use chorus_wire::time::UnixMicros;
use std::sync::Arc;

/// A channel that is not deleted.
#[derive(Clone, Debug)]
pub(crate) struct ChannelRecord {
    /// Its subject id in the log.
    pub id: ChannelId,
    /// `ch_…`; it never changes (CHN-07).
    pub public_id: Arc<str>,
    pub name: String,
    pub service: Option<String>,
    pub context: Option<String>,
    /// `None`: the operators own the channel.
    pub owner: Option<AgentId>,
    pub owner_name: Option<String>,
    pub member_count: i64,
    pub created_at: UnixMicros,
}

macro_rules! select_channels {
    ($rest:literal) => {
        concat!(
            "select c.id, c.public_id, c.name, c.service, c.context, c.owner, p.agent_id,
                    (select count(*) from channel_members m where m.channel = c.id and m.left_at is null), c.created_at
             from channels c left join principals p on p.id = c.owner where c.deleted_at is null ",
            $rest
        )
    };
}

/// Reads the columns of `select_channels!`.
impl FromRow for ChannelRecord {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(ChannelRecord {
            id: columns.id()?,
            public_id: columns.text()?.into(),
            name: columns.text()?,
            service: columns.maybe_text()?,
            context: columns.maybe_text()?,
            owner: columns.maybe_id()?,
            owner_name: columns.maybe_text()?,
            member_count: columns.int()?,
            created_at: UnixMicros(columns.int()?),
        })
    }
}

pub(crate) async fn insert_channel(
    tx: &DbConnection<'_>,
    channel: &ChannelRecord,
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into channels (id, public_id, name, service, context, owner, created_at)
                       values ($1, $2, $3, $4, $5, $6, $7)";
    let params = [
        SqlParam::id(channel.id),
        SqlParam::Text(&channel.public_id),
        SqlParam::Text(&channel.name),
        SqlParam::optional_text(channel.service.as_deref()),
        SqlParam::optional_text(channel.context.as_deref()),
        SqlParam::optional_id(channel.owner),
        SqlParam::Int(channel.created_at.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// The channel of this public id, unless it is deleted.
pub(crate) async fn find_channel_by_public_id(
    tx: &DbConnection<'_>,
    id: &str,
) -> Result<Option<ChannelRecord>, DbError> {
    // PostgreSQL rejects a text with a NUL character; no stored id contains one.
    if id.contains('\0') {
        return Ok(None);
    }
    tx.query_first(
        select_channels!("and c.public_id = $1"),
        &[SqlParam::Text(id)],
    )
    .await?
    .map(ChannelRecord::from_row)
    .transpose()
}

/// The channel of this subject id, unless it is deleted.
pub(crate) async fn find_channel(
    tx: &DbConnection<'_>,
    id: ChannelId,
) -> Result<Option<ChannelRecord>, DbError> {
    tx.query_first(select_channels!("and c.id = $1"), &[SqlParam::id(id)])
        .await?
        .map(ChannelRecord::from_row)
        .transpose()
}

/// Whether this hub has or had a channel of this public id; a deleted one counts until it is trimmed.
pub(crate) async fn is_public_id_known(
    tx: &DbConnection<'_>,
    public_id: &str,
) -> Result<bool, DbError> {
    // PostgreSQL rejects a text with a NUL character; no stored id contains one.
    if public_id.contains('\0') {
        return Ok(false);
    }
    const SQL: &str = "select 1 from channels where public_id = $1";
    Ok(tx
        .query_first(SQL, &[SqlParam::Text(public_id)])
        .await?
        .is_some())
}

/// The public id of the channel of this subject id, also of a deleted one until it is trimmed.
pub(crate) async fn find_public_id(
    tx: &DbConnection<'_>,
    id: ChannelId,
) -> Result<Option<String>, DbError> {
    let row = tx
        .query_first(
            "select public_id from channels where id = $1",
            &[SqlParam::id(id)],
        )
        .await?;
    row.map(|mut row| row.text(0)).transpose()
}

/// The channels of which this agent is a member, or all channels, in the order of their creation.
pub(crate) async fn list_channels(
    tx: &DbConnection<'_>,
    principal: Option<AgentId>,
    after: ChannelId,
    limit: usize,
) -> Result<Vec<ChannelRecord>, DbError> {
    const MINE: &str = select_channels!(
        "and c.id in (select channel from channel_members where principal = $3 and left_at is null and channel > $1
                      order by channel limit $2) order by c.id"
    );
    const ALL: &str = select_channels!("and c.id > $1 order by c.id limit $2");
    let after = SqlParam::id(after);
    let limit = SqlParam::Int(limit as i64);
    let rows = match principal {
        Some(principal) => {
            tx.query(MINE, &[after, limit, SqlParam::id(principal)])
                .await?
        }
        None => tx.query(ALL, &[after, limit]).await?,
    };
    rows.into_iter().map(ChannelRecord::from_row).collect()
}

pub(crate) async fn count_owned_channels(
    tx: &DbConnection<'_>,
    owner: AgentId,
) -> Result<i64, DbError> {
    const SQL: &str = "select count(*) from channels where owner = $1 and deleted_at is null";
    tx.query_first(SQL, &[SqlParam::id(owner)])
        .await?
        .map_or(Ok(0), |row| row.int(0))
}

/// Stores the name, service and context of `channel`.
pub(crate) async fn update_channel(
    tx: &DbConnection<'_>,
    channel: &ChannelRecord,
) -> Result<(), DbError> {
    const SQL: &str = "update channels set name = $2, service = $3, context = $4 where id = $1";
    let params = [
        SqlParam::id(channel.id),
        SqlParam::Text(&channel.name),
        SqlParam::optional_text(channel.service.as_deref()),
        SqlParam::optional_text(channel.context.as_deref()),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// Marks the channel as deleted, ends all memberships and deletes the members' sealed secrets.
pub(crate) async fn mark_channel_deleted(
    tx: &DbConnection<'_>,
    id: ChannelId,
    now: UnixMicros,
) -> Result<(), DbError> {
    const MEMBERS: &str =
        "update channel_members set left_at = $2, connection = null, signing = null
                           where channel = $1 and left_at is null";
    let params = [SqlParam::id(id), SqlParam::Int(now.0)];
    tx.execute(MEMBERS, &params).await?;
    channel_deliveries::end_channel_deliveries(tx, id, now).await?;
    tx.execute("update channels set deleted_at = $2 where id = $1", &params)
        .await
        .map(drop)
}

/// Makes the operators the owners of an unregistered agent's channels.
pub(crate) async fn clear_channel_owner(
    tx: &DbConnection<'_>,
    owner: AgentId,
) -> Result<(), DbError> {
    const SQL: &str = "update channels set owner = null where owner = $1 and deleted_at is null";
    tx.execute(SQL, &[SqlParam::id(owner)]).await.map(drop)
}

/// A current or former member of a channel.
#[derive(Clone, Debug)]
pub(crate) struct ChannelMemberRecord {
    pub id: MemberId,
    /// The channel's subject id.
    pub channel: ChannelId,
    pub name: String,
    pub principal: Option<AgentId>,
    /// The name of the agent `principal`.
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
    /// Why it did not take the last delivery, and when it refused it.
    pub refusal: Option<(String, UnixMicros)>,
    /// Whether the agent `principal` has an endpoint.
    pub has_endpoint: bool,
    /// Agent-to-agent steps between a person's message and the last message delivered to the member.
    pub turn: i64,
    /// When it joined, or was invited.
    pub joined_at: UnixMicros,
    pub left_at: Option<UnixMicros>,
    /// `None` while the agent is only invited.
    pub accepted_at: Option<UnixMicros>,
    /// The tokens of deliveries that were issued in an earlier epoch have ended.
    pub token_epoch: i64,
}

impl ChannelMemberRecord {
    pub fn has_joined(&self) -> bool {
        self.accepted_at.is_some()
    }
}

macro_rules! select_members {
    ($rest:literal) => {
        concat!(
            "select m.id, m.channel, m.name, m.principal, p.agent_id, m.via, m.deliver, m.connection, m.signing, m.status,
                    m.status_at, m.identity, m.unreachable_at, m.turn, m.joined_at, m.left_at,
                    m.accepted_at, m.refusal, m.refused_at, m.token_epoch, cast(case when p.endpoint is null then 0 else 1 end as bigint)
             from channel_members m left join principals p on p.id = m.principal ",
            $rest
        )
    };
}

pub(super) use select_members;

/// Reads the columns of `select_members!`.
impl FromRow for ChannelMemberRecord {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        let unknown_value = |value: String| {
            DbError::Other(format!("a member is reached in a newer hub's way: {value}"))
        };
        let parse_route = |via: String| MemberRoute::parse(&via).ok_or_else(|| unknown_value(via));
        let parse_mode =
            |deliver: String| DeliveryMode::parse(&deliver).ok_or_else(|| unknown_value(deliver));
        Ok(ChannelMemberRecord {
            id: columns.id()?,
            channel: columns.id()?,
            name: columns.text()?,
            principal: columns.maybe_id()?,
            agent_id: columns.maybe_text()?.map(Into::into),
            via: parse_route(columns.text()?)?,
            deliver: parse_mode(columns.text()?)?,
            sealed_connection: columns.maybe_bytes()?,
            sealed_signing_secret: columns.maybe_bytes()?,
            status: columns
                .maybe_text()?
                .zip(columns.maybe_int()?.map(UnixMicros)),
            identity: columns.maybe_text()?,
            unreachable_at: columns.maybe_int()?.map(UnixMicros),
            turn: columns.int()?,
            joined_at: UnixMicros(columns.int()?),
            left_at: columns.maybe_int()?.map(UnixMicros),
            accepted_at: columns.maybe_int()?.map(UnixMicros),
            refusal: columns
                .maybe_text()?
                .zip(columns.maybe_int()?.map(UnixMicros)),
            token_epoch: columns.int()?,
            has_endpoint: columns.int()? == 1,
        })
    }
}

/// Inserts a member; false when the name is taken in the channel, or the agent is a member already.
pub(crate) async fn insert_member(
    tx: &DbConnection<'_>,
    member: &ChannelMemberRecord,
    folded_name: &str,
) -> Result<bool, DbError> {
    const SQL: &str =
        "insert into channel_members (id, channel, name, folded, principal, via, deliver, connection, signing, turn,
                                                    joined_at, accepted_at)
                       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) on conflict do nothing";
    let params = [
        SqlParam::id(member.id),
        SqlParam::id(member.channel),
        SqlParam::Text(&member.name),
        SqlParam::Text(folded_name),
        SqlParam::optional_id(member.principal),
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
        member
            .accepted_at
            .map_or(SqlParam::Null, |at| SqlParam::Int(at.0)),
    ];
    Ok(tx.execute(SQL, &params).await? == 1)
}

/// The current members of the channel and those that are invited, in the order in which they were added.
pub(crate) async fn list_members(
    tx: &DbConnection<'_>,
    channel: ChannelId,
) -> Result<Vec<ChannelMemberRecord>, DbError> {
    const SQL: &str = select_members!("where m.channel = $1 and m.left_at is null order by m.id");
    tx.query(SQL, &[SqlParam::id(channel)])
        .await?
        .into_iter()
        .map(ChannelMemberRecord::from_row)
        .collect()
}

/// The current or invited member of this name.
pub(crate) async fn find_member_by_name(
    tx: &DbConnection<'_>,
    channel: ChannelId,
    folded_name: &str,
) -> Result<Option<ChannelMemberRecord>, DbError> {
    // PostgreSQL rejects a text with a NUL character; no stored name contains one.
    if folded_name.contains('\0') {
        return Ok(None);
    }
    const SQL: &str =
        select_members!("where m.channel = $1 and m.folded = $2 and m.left_at is null");
    tx.query_first(SQL, &[SqlParam::id(channel), SqlParam::Text(folded_name)])
        .await?
        .map(ChannelMemberRecord::from_row)
        .transpose()
}

/// The agent's membership of the channel, once it has accepted.
pub(crate) async fn find_member_by_agent(
    tx: &DbConnection<'_>,
    channel: ChannelId,
    principal: AgentId,
) -> Result<Option<ChannelMemberRecord>, DbError> {
    const SQL: &str = select_members!(
        "where m.channel = $1 and m.principal = $2 and m.left_at is null and m.accepted_at is not null"
    );
    tx.query_first(SQL, &[SqlParam::id(channel), SqlParam::id(principal)])
        .await?
        .map(ChannelMemberRecord::from_row)
        .transpose()
}

/// The member of this id, also a former one.
pub(crate) async fn member_by_id(
    tx: &DbConnection<'_>,
    id: MemberId,
) -> Result<Option<ChannelMemberRecord>, DbError> {
    tx.query_first(select_members!("where m.id = $1"), &[SqlParam::id(id)])
        .await?
        .map(ChannelMemberRecord::from_row)
        .transpose()
}

/// The owner of the agent that has the member's channel; `None` when the operators have it.
pub(crate) async fn find_owner_of_member_channel(
    tx: &DbConnection<'_>,
    member: MemberId,
) -> Result<Option<OwnerId>, DbError> {
    const SQL: &str = "select p.owner from channel_members m join channels c on c.id = m.channel
                       join principals p on p.id = c.owner where m.id = $1";
    let row = tx.query_first(SQL, &[SqlParam::id(member)]).await?;
    row.map(|row| row.id(0)).transpose()
}

/// All current memberships and invitations of the agent.
pub(crate) async fn list_memberships(
    tx: &DbConnection<'_>,
    principal: AgentId,
) -> Result<Vec<ChannelMemberRecord>, DbError> {
    const SQL: &str = select_members!("where m.principal = $1 and m.left_at is null order by m.id");
    tx.query(SQL, &[SqlParam::id(principal)])
        .await?
        .into_iter()
        .map(ChannelMemberRecord::from_row)
        .collect()
}

/// Ends a membership and deletes its connection string and signing secret; false when it had ended before.
pub(crate) async fn mark_member_left(
    tx: &DbConnection<'_>,
    id: MemberId,
    now: UnixMicros,
) -> Result<bool, DbError> {
    const SQL: &str = "update channel_members set left_at = $2, connection = null, signing = null
                       where id = $1 and left_at is null";
    channel_deliveries::end_member_deliveries(tx, id, now).await?;
    Ok(tx
        .execute(SQL, &[SqlParam::id(id), SqlParam::Int(now.0)])
        .await?
        == 1)
}

/// Deletes up to `limit` former members and as many deleted channels from before `keep_since`. Returns how many.
pub(super) async fn trim_deleted_channels(
    tx: &DbConnection<'_>,
    keep_since: UnixMicros,
    limit: i64,
) -> Result<u64, DbError> {
    const MEMBERS: &str = "delete from channel_members where id in (
                               select id from channel_members where left_at < $1 order by left_at limit $2)";
    const TRIMMED: &str = "delete from trimmed where subject in (
                             select id from channels where deleted_at < $1 order by deleted_at limit $2)";
    const CHANNELS: &str = "delete from channels where id in (
                             select id from channels where deleted_at < $1 order by deleted_at limit $2)";
    let params = [SqlParam::Int(keep_since.0), SqlParam::Int(limit)];
    tx.execute(TRIMMED, &params).await?;
    Ok(tx.execute(MEMBERS, &params).await? + tx.execute(CHANNELS, &params).await?)
}
