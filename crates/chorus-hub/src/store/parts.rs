//! Who has a part in which entry, kept in strides: one index entry at a time would write a page of the database for each
//! sender and each receiver of a group, which costs more than the messages themselves.

use super::log::Head;
use super::{DbError, Param, Tx};

/// Entries that may wait to be indexed: what every reader looks through at most.
const STRIDE: i64 = 4_096;
/// A group as small as this has time to index itself at once.
const SMALL_GROUP: usize = 16;

/// Indexes the entries up to the newest one, if there is time or they have become many; where the index ends then.
pub(super) async fn keep(tx: &Tx<'_>, head: &Head, group: usize) -> Result<i64, DbError> {
    let waiting = head.seq - head.indexed;
    if waiting == 0 || (group > SMALL_GROUP && waiting < STRIDE) {
        return Ok(head.indexed);
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
    tx.execute("update settings set value = $1 where name = 'indexed'", &[Param::Int(head.seq)]).await?;
    Ok(head.seq)
}

/// Forgets the parts of entries up to `last`, which are about to go. All of them are indexed.
pub(super) async fn forget(tx: &Tx<'_>, last: i64) -> Result<(), DbError> {
    const SQL: &str = "delete from parts where (who, class, seq) in (
                           select subject, case when kind = 'message' then 0 else 2 end, seq from log where seq <= $1
                           union all
                           select actor, 1, seq from log where seq <= $1 and kind = 'message')";
    tx.execute(SQL, &[Param::Int(last)]).await.map(drop)
}
