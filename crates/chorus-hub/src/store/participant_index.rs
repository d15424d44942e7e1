//! Who has a part in which entry, kept in strides: one index entry at a time would write a page of the database for each
//! sender and each receiver of a group, which costs more than the messages themselves.

use super::log::LogHead;
use super::{DbConnection, DbError, SqlParam};
use chorus_wire::time::UnixMicros;
use std::time::Duration;

/// Entries that may wait to be indexed: what every reader looks through at most.
const MAX_UNINDEXED: i64 = 4_096;
/// So few are indexed at once: it costs no more than to remember them.
const SMALL_BATCH: i64 = 16;
/// Some that have waited this long are indexed with the next group, so that a hub with little to do has little to look through.
const MAX_INDEX_DELAY: Duration = Duration::from_millis(500);

/// Indexes the entries up to the newest one, if that is due.
pub(super) async fn index_new_entries(
    tx: &DbConnection<'_>,
    head: &mut LogHead,
    now: UnixMicros,
) -> Result<(), DbError> {
    let unindexed = head.seq - head.indexed_seq;
    let is_due = unindexed >= MAX_UNINDEXED
        || unindexed <= SMALL_BATCH
        || now >= head.indexed_at.saturating_add(MAX_INDEX_DELAY);
    if unindexed == 0 || !is_due {
        return Ok(());
    }
    // In the order of the index, so that entries of one agent fall on one page.
    const INDEX_RECEIVED: &str = "insert into parts (who, class, seq)
                         select subject, case when kind = 'message' then 0 else 2 end, seq from log
                         where seq > $1 and seq <= $2 and subject <> 0 order by 1, 2, 3";
    const INDEX_SENT: &str = "insert into parts (who, class, seq)
                        select actor, 1, seq from log
                        where seq > $1 and seq <= $2 and kind = 'message' and actor <> subject order by 1, 3";
    let range = [SqlParam::Int(head.indexed_seq), SqlParam::Int(head.seq)];
    tx.execute(INDEX_RECEIVED, &range).await?;
    tx.execute(INDEX_SENT, &range).await?;
    tx.execute(
        "update settings set value = $1 where name = 'indexed'",
        &[SqlParam::Int(head.seq)],
    )
    .await?;
    (head.indexed_seq, head.indexed_at) = (head.seq, now);
    Ok(())
}

/// Forgets the parts of entries up to `last`, which are about to go. All of them are indexed.
pub(super) async fn delete_index_rows(tx: &DbConnection<'_>, last_seq: i64) -> Result<(), DbError> {
    const SQL: &str = "delete from parts where (who, class, seq) in (
                           select subject, case when kind = 'message' then 0 else 2 end, seq from log where seq <= $1
                           union all
                           select actor, 1, seq from log where seq <= $1 and kind = 'message')";
    tx.execute(SQL, &[SqlParam::Int(last_seq)]).await.map(drop)
}
