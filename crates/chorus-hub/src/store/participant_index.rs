//! The participant index: which entries an agent sent, received or heard. It is written in batches, because one row at a time
//! would write a database page for each sender and receiver of a group, which costs more than the messages themselves.

use super::log::LogHead;
use super::sql_dialect::{InsertSelect, insert_select};
use super::{DbConnection, DbError, LogSeq, SqlParam, owner_usage};
use chorus_wire::time::UnixMicros;
use std::time::Duration;

/// How an agent or channel takes part in an entry: the column `class` of the table `parts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParticipantClass {
    /// Received a message.
    Received = 0,
    /// Sent a message.
    Sent = 1,
    /// Heard an entry that is not a message: a receipt, a job, or any entry of a channel.
    Heard = 2,
}

impl ParticipantClass {
    pub const fn as_param(self) -> SqlParam<'static> {
        SqlParam::Int(self as i64)
    }
}

/// Max entries that wait to be indexed. Every reader scans the unindexed entries, so this bounds that scan.
const MAX_UNINDEXED: i64 = 4_096;
/// Up to this many waiting entries are indexed immediately; deferring so few saves nothing.
const SMALL_BATCH: i64 = 16;
/// Entries that have waited this long are indexed with the next group, so that readers of an idle hub scan little.
const MAX_INDEX_DELAY: Duration = Duration::from_millis(500);

/// Indexes the entries up to the newest one, if a batch is due.
pub(super) async fn index_new_entries(
    tx: &DbConnection<'_>,
    head: &mut LogHead,
    now: UnixMicros,
) -> Result<(), DbError> {
    let unindexed = head.seq.distance_from(head.indexed_seq);
    let is_due = unindexed >= MAX_UNINDEXED
        || unindexed <= SMALL_BATCH
        || now >= head.indexed_at.saturating_add(MAX_INDEX_DELAY);
    if unindexed == 0 || !is_due {
        return Ok(());
    }
    // In index order, so that the rows of one agent fall on one page.
    const INDEX_RECEIVED: InsertSelect = insert_select!(
        "parts (who, class, seq)
         select subject, case when kind = 'message' then cast($3 as bigint)
                         else cast($4 as bigint) end, seq from log
         where seq > $1 and seq <= $2 and subject <> 0 order by 1, 2, 3"
    );
    const INDEX_SENT: InsertSelect = insert_select!(
        "parts (who, class, seq)
         select actor, cast($3 as bigint), seq from log
         where seq > $1 and seq <= $2 and kind = 'message' and actor <> subject order by 1, 3"
    );
    let first = SqlParam::id(head.indexed_seq);
    let last = SqlParam::id(head.seq);
    let received = ParticipantClass::Received.as_param();
    let sent = ParticipantClass::Sent.as_param();
    let heard = ParticipantClass::Heard.as_param();
    tx.execute(INDEX_RECEIVED.sql(tx), &[first, last, received, heard])
        .await?;
    tx.execute(INDEX_SENT.sql(tx), &[first, last, sent]).await?;
    owner_usage::count_indexed_entries(tx, head.indexed_seq, head.seq).await?;
    tx.execute(
        "update settings set value = $1 where name = 'indexed'",
        &[SqlParam::id(head.seq)],
    )
    .await?;
    head.indexed_seq = head.seq;
    head.indexed_at = now;
    Ok(())
}

/// Deletes the index rows of the entries up to `last_seq`, which are about to be trimmed. All of them are indexed.
pub(super) async fn delete_index_rows(
    tx: &DbConnection<'_>,
    last_seq: LogSeq,
) -> Result<(), DbError> {
    const SQL: &str = "delete from parts where (who, class, seq) in (
                           select subject, case when kind = 'message' then cast($2 as bigint)
                                           else cast($3 as bigint) end, seq from log where seq <= $1
                           union all
                           select actor, cast($4 as bigint), seq from log where seq <= $1 and kind = 'message')";
    let params = [
        SqlParam::id(last_seq),
        ParticipantClass::Received.as_param(),
        ParticipantClass::Heard.as_param(),
        ParticipantClass::Sent.as_param(),
    ];
    tx.execute(SQL, &params).await.map(drop)
}
