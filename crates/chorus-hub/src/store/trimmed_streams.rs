//! How far retention has deleted each stream, so that a reader with an older cursor is told of the gap.

use super::{DbConnection, DbError, LogSeq, SqlParam, SubjectId};

/// Records that the entries up to `last_seq` are about to be deleted. The activity of the hub is the stream of
/// [`SubjectId::HUB`].
pub(super) async fn record_trimmed_entries(
    tx: &DbConnection<'_>,
    last_seq: LogSeq,
) -> Result<(), DbError> {
    const STREAMS: &str = "insert into trimmed (subject, seq)
        select subject, max(seq) from log where seq <= $1 and subject <> 0 group by subject
        on conflict (subject) do update set seq = excluded.seq";
    const ACTIVITY: &str = "insert into trimmed (subject, seq)
        select 0, max(seq) from log where seq <= $1 and kind in ('message', 'activity') having count(*) > 0
        on conflict (subject) do update set seq = excluded.seq";
    tx.execute(STREAMS, &[SqlParam::id(last_seq)]).await?;
    tx.execute(ACTIVITY, &[SqlParam::id(last_seq)])
        .await
        .map(drop)
}

/// The last entry of the stream of `subject` that retention has deleted; before the first entry if it deleted none.
pub(crate) async fn find_trimmed_seq(
    tx: &DbConnection<'_>,
    subject: SubjectId,
) -> Result<LogSeq, DbError> {
    const SQL: &str = "select seq from trimmed where subject = $1";
    tx.query_first(SQL, &[SqlParam::id(subject)])
        .await?
        .map_or(Ok(LogSeq::START), |row| row.id(0))
}
