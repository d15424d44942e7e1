//! Pending channel deliveries of each member.

use super::channel_tokens::expire_persistent_callback;
use super::{ChannelId, DbConnection, DbError, LogSeq, MemberId, SqlParam};
use chorus_wire::time::UnixMicros;

pub(crate) async fn enqueue_delivery(
    tx: &DbConnection<'_>,
    member: MemberId,
    seq: LogSeq,
) -> Result<(), DbError> {
    const SQL: &str = "insert into deliveries (member, seq) values ($1, $2) on conflict do nothing";
    tx.execute(SQL, &[SqlParam::id(member), SqlParam::id(seq)])
        .await
        .map(drop)
}

/// The sequence of the member's oldest pending delivery.
pub(crate) async fn find_first_pending_seq(
    tx: &DbConnection<'_>,
    member: MemberId,
) -> Result<Option<LogSeq>, DbError> {
    const SQL: &str = "select seq from deliveries where member = $1 order by seq limit 1";
    tx.query_first(SQL, &[SqlParam::id(member)])
        .await?
        .map(|row| row.id(0))
        .transpose()
}

/// The sequences of the member's newest pending deliveries, newest first.
pub(crate) async fn list_newest_pending_seqs(
    tx: &DbConnection<'_>,
    member: MemberId,
    limit: usize,
) -> Result<Vec<LogSeq>, DbError> {
    const SQL: &str = "select seq from deliveries where member = $1 order by seq desc limit $2";
    let rows = tx
        .query(SQL, &[SqlParam::id(member), SqlParam::Int(limit as i64)])
        .await?;
    rows.iter().map(|row| row.id(0)).collect()
}

/// Removes one delivery from the member's pending ones.
pub(crate) async fn complete_delivery(
    tx: &DbConnection<'_>,
    member: MemberId,
    seq: LogSeq,
) -> Result<(), DbError> {
    const SQL: &str = "delete from deliveries where member = $1 and seq = $2";
    tx.execute(SQL, &[SqlParam::id(member), SqlParam::id(seq)])
        .await
        .map(drop)
}

/// Removes this delivery and all before it from the member's pending ones.
pub(crate) async fn complete_deliveries_to(
    tx: &DbConnection<'_>,
    member: MemberId,
    seq: LogSeq,
) -> Result<(), DbError> {
    const SQL: &str = "delete from deliveries where member = $1 and seq <= $2";
    tx.execute(SQL, &[SqlParam::id(member), SqlParam::id(seq)])
        .await
        .map(drop)
}

/// Deliveries that were dropped because too many were pending.
pub(crate) struct DroppedDeliveries {
    pub count: u64,
    pub last_seq: LogSeq,
}

/// Drops all pending deliveries but the newest `kept_count`; `None` when there are no more.
pub(crate) async fn drop_all_but_newest(
    tx: &DbConnection<'_>,
    member: MemberId,
    kept_count: usize,
) -> Result<Option<DroppedDeliveries>, DbError> {
    const LAST_DROPPED: &str =
        "select seq from deliveries where member = $1 order by seq desc limit 1 offset $2";
    const DROP: &str = "delete from deliveries where member = $1 and seq <= $2";
    let kept_count = SqlParam::Int(kept_count as i64);
    let found = tx
        .query_first(LAST_DROPPED, &[SqlParam::id(member), kept_count])
        .await?;
    let Some(row) = found else {
        return Ok(None);
    };
    let last_seq: LogSeq = row.id(0)?;
    let count = tx
        .execute(DROP, &[SqlParam::id(member), SqlParam::id(last_seq)])
        .await?;
    Ok(Some(DroppedDeliveries { count, last_seq }))
}

/// Drops all pending deliveries of the member.
pub(crate) async fn drop_pending_deliveries(
    tx: &DbConnection<'_>,
    member: MemberId,
) -> Result<(), DbError> {
    tx.execute(
        "delete from deliveries where member = $1",
        &[SqlParam::id(member)],
    )
    .await
    .map(drop)
}

/// Drops the pending deliveries of a member that left and expires its persistent callback.
pub(super) async fn end_member_deliveries(
    tx: &DbConnection<'_>,
    member: MemberId,
    now: UnixMicros,
) -> Result<(), DbError> {
    drop_pending_deliveries(tx, member).await?;
    expire_persistent_callback(tx, member, now).await
}

/// Drops the pending deliveries of all members of a channel and expires their persistent callbacks.
pub(super) async fn end_channel_deliveries(
    tx: &DbConnection<'_>,
    channel: ChannelId,
    now: UnixMicros,
) -> Result<(), DbError> {
    const DROP_PENDING: &str = "delete from deliveries where member in (select id from channel_members where channel = $1)";
    const EXPIRE_CALLBACKS: &str =
        "update channel_tokens set expires_at = $2 where expires_at is null and member in
                            (select id from channel_members where channel = $1)";
    tx.execute(DROP_PENDING, &[SqlParam::id(channel)]).await?;
    tx.execute(
        EXPIRE_CALLBACKS,
        &[SqlParam::id(channel), SqlParam::Int(now.0)],
    )
    .await
    .map(drop)
}
