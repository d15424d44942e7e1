//! What changes about a member of a channel: status, identity, reachability, refusals, delivery mode and turn.

use super::{DbConnection, DbError, MemberId, SqlParam};
use chorus_wire::channel::channels::DeliveryMode;
use chorus_wire::time::UnixMicros;

/// Sets the member's status; `None` clears it.
pub(crate) async fn set_status(
    tx: &DbConnection<'_>,
    id: MemberId,
    status: Option<&str>,
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "update channel_members set status = $2, status_at = $3 where id = $1";
    tx.execute(
        SQL,
        &[
            SqlParam::id(id),
            SqlParam::optional_text(status),
            SqlParam::Int(now.0),
        ],
    )
    .await
    .map(drop)
}

/// Sets how the member presents itself, as JSON.
pub(crate) async fn set_identity(
    tx: &DbConnection<'_>,
    id: MemberId,
    identity: &str,
) -> Result<(), DbError> {
    const SQL: &str = "update channel_members set identity = $2 where id = $1";
    tx.execute(SQL, &[SqlParam::id(id), SqlParam::Text(identity)])
        .await
        .map(drop)
}

/// Marks the member as unreachable since a time, or as reachable; false when that changes nothing.
pub(crate) async fn set_unreachable(
    tx: &DbConnection<'_>,
    id: MemberId,
    since: Option<UnixMicros>,
) -> Result<bool, DbError> {
    const MARK: &str =
        "update channel_members set unreachable_at = $2 where id = $1 and unreachable_at is null";
    const CLEAR: &str = "update channel_members set unreachable_at = null where id = $1 and unreachable_at is not null";
    let changed = match since {
        Some(since) => {
            tx.execute(MARK, &[SqlParam::id(id), SqlParam::Int(since.0)])
                .await?
        }
        None => tx.execute(CLEAR, &[SqlParam::id(id)]).await?,
    };
    Ok(changed == 1)
}

/// Stores why the member did not take a delivery and when; `None` after it took one.
pub(crate) async fn set_refusal(
    tx: &DbConnection<'_>,
    id: MemberId,
    refusal: Option<(&str, UnixMicros)>,
) -> Result<(), DbError> {
    const SQL: &str = "update channel_members set refusal = $2, refused_at = $3 where id = $1";
    let params = [
        SqlParam::id(id),
        SqlParam::optional_text(refusal.map(|(reason, _)| reason)),
        SqlParam::optional_int(refusal.map(|(_, at)| at.0)),
    ];
    tx.execute(SQL, &params).await.map(drop)
}

/// Sets which messages are delivered to the member.
pub(crate) async fn set_delivery_mode(
    tx: &DbConnection<'_>,
    id: MemberId,
    deliver: DeliveryMode,
) -> Result<(), DbError> {
    const SQL: &str = "update channel_members set deliver = $2 where id = $1";
    tx.execute(SQL, &[SqlParam::id(id), SqlParam::Text(deliver.as_str())])
        .await
        .map(drop)
}

/// Stores how many agent-to-agent steps the last delivered message was away from a person's message.
pub(crate) async fn set_turn(
    tx: &DbConnection<'_>,
    id: MemberId,
    turn: i64,
) -> Result<(), DbError> {
    const SQL: &str = "update channel_members set turn = $2 where id = $1";
    tx.execute(SQL, &[SqlParam::id(id), SqlParam::Int(turn)])
        .await
        .map(drop)
}
