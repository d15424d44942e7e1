//! Log entries of channels: pages of a channel's history, undelivered messages, and which entry a tool call is.

use super::log::{self, EntryPage, LogEntry};
use super::participant_index::ParticipantClass;
use super::{ChannelId, DbConnection, DbError, FromRow, LogSeq, MemberId, SqlParam};
use chorus_wire::limits;

/// Stores the sequence of a tool call, so that its result can refer to it.
pub(crate) async fn record_tool_call(
    tx: &DbConnection<'_>,
    member: MemberId,
    call_id: &str,
    seq: LogSeq,
) -> Result<(), DbError> {
    const SQL: &str = "insert into channel_calls (member, call_id, seq) values ($1, $2, $3)
                       on conflict (member, call_id) do update set seq = excluded.seq";
    tx.execute(
        SQL,
        &[
            SqlParam::id(member),
            SqlParam::Text(call_id),
            SqlParam::id(seq),
        ],
    )
    .await
    .map(drop)
}

/// The sequence of the tool call of this id.
pub(crate) async fn find_tool_call_seq(
    tx: &DbConnection<'_>,
    member: MemberId,
    call_id: &str,
) -> Result<Option<LogSeq>, DbError> {
    const SQL: &str = "select seq from channel_calls where member = $1 and call_id = $2";
    let row = tx
        .query_first(SQL, &[SqlParam::id(member), SqlParam::Text(call_id)])
        .await?;
    row.map(|row| row.id(0)).transpose()
}

/// The entry at this sequence, if its subject is a channel.
pub(crate) async fn find_channel_entry(
    tx: &DbConnection<'_>,
    seq: LogSeq,
) -> Result<Option<LogEntry>, DbError> {
    const SQL: &str = concat!(
        "select ",
        log::entry_columns!("''", "c.public_id"),
        " from log l join channels c on c.id = l.subject where l.seq = $1"
    );
    tx.query_first(SQL, &[SqlParam::id(seq)])
        .await?
        .map(LogEntry::from_row)
        .transpose()
}

/// The entries of the member's newest pending deliveries, newest first, as many as fit into one delivery.
pub(crate) async fn list_undelivered_entries(
    tx: &DbConnection<'_>,
    member: MemberId,
    limit: usize,
) -> Result<Vec<LogEntry>, DbError> {
    const SQL: &str = concat!(
        "select ",
        log::entry_columns!("''", "''"),
        " from deliveries d join log l on l.seq = d.seq where d.member = $1 order by d.seq desc limit $2"
    );
    let params = [SqlParam::id(member), SqlParam::Int(limit as i64)];
    // A stored entry is larger than what a delivery takes from it.
    Ok(
        log::read_page(tx, SQL, &params, limit, 2 * limits::BACKLOG_BYTES)
            .await?
            .entries,
    )
}

macro_rules! select_entries_before {
    ($index_join:literal, $tail_condition:literal) => {
        concat!(
            "select ",
            log::entry_columns!("''", "''"),
            " from log l
             where l.seq in (
                 select seq from (select x.seq from parts x ",
            $index_join,
            " where x.who = $1 and x.class = $5 and x.seq < $2 order by x.seq desc limit $3) r
                 union all
                 select seq from (select seq from log where seq > $4 and seq < $2 and subject = $1 ",
            $tail_condition,
            " order by seq desc limit $3) t)
             order by l.seq desc limit $3"
        )
    };
}

/// The last entries of a channel before a sequence, oldest first: all entries, or only messages.
pub(crate) async fn list_entries_before(
    tx: &DbConnection<'_>,
    channel: ChannelId,
    before_seq: LogSeq,
    indexed_seq: LogSeq,
    only_messages: bool,
    limit: usize,
) -> Result<EntryPage, DbError> {
    const ALL: &str = select_entries_before!("", "");
    const MESSAGES_ONLY: &str = select_entries_before!(
        "join log k on k.seq = x.seq and k.kind = 'said'",
        "and kind = 'said'"
    );
    let params = [
        SqlParam::id(channel),
        SqlParam::id(before_seq),
        SqlParam::Int(limit as i64),
        SqlParam::id(indexed_seq),
        ParticipantClass::Heard.as_param(),
    ];
    let sql = if only_messages { MESSAGES_ONLY } else { ALL };
    let mut page = log::read_page(tx, sql, &params, limit, limits::HISTORY_PAGE_BYTES).await?;
    page.entries.reverse();
    Ok(page)
}

/// Deletes the tool calls whose log entries are about to be trimmed.
pub(super) async fn delete_tool_calls(
    tx: &DbConnection<'_>,
    last_seq: LogSeq,
) -> Result<(), DbError> {
    tx.execute(
        "delete from channel_calls where seq <= $1",
        &[SqlParam::id(last_seq)],
    )
    .await
    .map(drop)
}
