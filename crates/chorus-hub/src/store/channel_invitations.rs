//! Memberships of channels that agents have yet to accept, in the table of members.

use super::channels::{ChannelMemberRecord, select_members};
use super::{AgentId, ChannelId, DbConnection, DbError, FromRow, MemberId, SqlParam};
use chorus_wire::time::UnixMicros;

/// The agent's membership of the channel, also one that it has yet to accept.
pub(crate) async fn find_membership(
    tx: &DbConnection<'_>,
    channel: ChannelId,
    agent: AgentId,
) -> Result<Option<ChannelMemberRecord>, DbError> {
    const SQL: &str =
        select_members!("where m.channel = $1 and m.principal = $2 and m.left_at is null");
    tx.query_first(SQL, &[SqlParam::id(channel), SqlParam::id(agent)])
        .await?
        .map(ChannelMemberRecord::from_row)
        .transpose()
}

/// The agent's memberships and invitations of the channels after `after`, in the order of the channels.
pub(crate) async fn list_memberships_page(
    tx: &DbConnection<'_>,
    agent: AgentId,
    after: ChannelId,
    limit: usize,
) -> Result<Vec<ChannelMemberRecord>, DbError> {
    const SQL: &str = select_members!(
        "where m.principal = $1 and m.left_at is null and m.channel > $2 order by m.channel limit $3"
    );
    let params = [
        SqlParam::id(agent),
        SqlParam::id(after),
        SqlParam::Int(limit as i64),
    ];
    tx.query(SQL, &params)
        .await?
        .into_iter()
        .map(ChannelMemberRecord::from_row)
        .collect()
}

/// Counts the invitations that the agent has not answered.
pub(crate) async fn count_invitations(
    tx: &DbConnection<'_>,
    agent: AgentId,
) -> Result<i64, DbError> {
    const SQL: &str = "select count(*) from channel_members
                       where principal = $1 and left_at is null and accepted_at is null";
    tx.query_first(SQL, &[SqlParam::id(agent)])
        .await?
        .map_or(Ok(0), |row| row.int(0))
}

/// The invited agent joins.
pub(crate) async fn accept_invitation(
    tx: &DbConnection<'_>,
    member: MemberId,
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "update channel_members set accepted_at = $2, joined_at = $2 where id = $1";
    tx.execute(SQL, &[SqlParam::id(member), SqlParam::Int(now.0)])
        .await
        .map(drop)
}
