//! Where a reader of the log starts: after a sequence, or at an instant.

use super::{DbConnection, DbError, LogSeq, SqlParam};
use chorus_wire::{cursor::HistoryStart, time::UnixMicros};

/// The sequence after which a reader that starts there reads on.
pub(crate) async fn find_start_seq(
    tx: &DbConnection<'_>,
    start: HistoryStart,
) -> Result<LogSeq, DbError> {
    match start {
        HistoryStart::AfterId(id) => Ok(LogSeq::from_client(id)),
        HistoryStart::FromTime(at) => find_seq_before(tx, at).await,
    }
}

/// The sequence just before the first entry at or after `at`. Times increase with sequences, so a binary search finds it with
/// twenty queries among a million entries. An index on time would cost every write.
pub(crate) async fn find_seq_before(
    tx: &DbConnection<'_>,
    at: UnixMicros,
) -> Result<LogSeq, DbError> {
    let mut low = 1;
    let mut high = 1;
    if let Some(row) = tx
        .query_first(
            "select coalesce(min(seq), 1), coalesce(max(seq), 0) from log",
            &[],
        )
        .await?
    {
        let mut columns = row.columns();
        low = columns.int()?;
        high = columns.int()? + 1;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        let found = tx
            .query_first(
                "select seq, at from log where seq >= $1 order by seq limit 1",
                &[SqlParam::Int(middle)],
            )
            .await?;
        let Some(row) = found else {
            high = middle;
            continue;
        };
        let mut columns = row.columns();
        let found_seq = columns.int()?;
        let found_at = columns.int()?;
        if found_at < at.0 {
            low = found_seq + 1;
        } else {
            high = middle;
        }
    }
    Ok(LogSeq(low - 1))
}
