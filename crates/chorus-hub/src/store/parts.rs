//! Who has a part in which entry, kept in strides: one index entry at a time would write a page of the database for each
//! sender and each receiver of a group, which costs more than the messages themselves.

use super::log::Head;
use super::{DbError, Param, Tx};
use chorus_wire::time::Micros;
use std::time::Duration;

/// Entries that may wait to be indexed: what every reader looks through at most.
const STRIDE: i64 = 4_096;
/// So few are indexed at once: it costs no more than to remember them.
const FEW: i64 = 16;
/// Some that have waited this long are indexed with the next group, so that a hub with little to do has little to look through.
const PATIENCE: Duration = Duration::from_millis(500);

/// Indexes the entries up to the newest one, if that is due.
pub(super) async fn keep(tx: &Tx<'_>, head: &mut Head, now: Micros) -> Result<(), DbError> {
    let waiting = head.seq - head.indexed;
    let due = waiting >= STRIDE || waiting <= FEW || now >= head.indexed_at.plus(PATIENCE);
    if waiting == 0 || !due {
        return Ok(());
    }
    // In the order of the index, so that entries of one agent fall on one page.
    const HEARD: &str = "insert into parts (who, class, seq)
                         select subject, case when kind = 'message' then 0 else 2 end, seq from log
                         where seq > $1 and seq <= $2 and subject <> 0 order by 1, 2, 3";
    const SENT: &str = "insert into parts (who, class, seq)
                        select actor, 1, seq from log
                        where seq > $1 and seq <= $2 and kind = 'message' and actor <> subject order by 1, 3";
    let range = [Param::Int(head.indexed), Param::Int(head.seq)];
    tx.execute(HEARD, &range).await?;
    tx.execute(SENT, &range).await?;
    tx.execute(
        "update settings set value = $1 where name = 'indexed'",
        &[Param::Int(head.seq)],
    )
    .await?;
    (head.indexed, head.indexed_at) = (head.seq, now);
    Ok(())
}

/// Forgets the parts of entries up to `last`, which are about to go. All of them are indexed.
pub(super) async fn forget(tx: &Tx<'_>, last: i64) -> Result<(), DbError> {
    const SQL: &str = "delete from parts where (who, class, seq) in (
                           select subject, case when kind = 'message' then 0 else 2 end, seq from log where seq <= $1
                           union all
                           select actor, 1, seq from log where seq <= $1 and kind = 'message')";
    tx.execute(SQL, &[Param::Int(last)]).await.map(drop)
}
