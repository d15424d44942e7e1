//! Bounded scans of messages from the newest back: those of one agent, those with one peer, and those of the whole hub. Each
//! reads a fixed number of entries and returns a cursor to go on (D-116).

use super::log::{self, LogEntry};
use super::participant_index::ParticipantClass;
use super::{AgentId, ColumnReader, DbConnection, DbError, FromRow, LogSeq, SqlParam};
use chorus_wire::{limits, time::UnixMicros};

/// Some messages, newest first, and the sequence before which the next page looks.
pub(crate) struct MessageScan<T> {
    pub rows: Vec<T>,
    /// `None` when there is nothing before the rows.
    pub next_before: Option<LogSeq>,
}

/// A message and whether its receiver has responded to it.
pub(crate) struct ScannedMessage {
    pub entry: LogEntry,
    pub is_answered: bool,
}

impl FromRow for ScannedMessage {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(ScannedMessage {
            entry: LogEntry::from_columns(columns)?,
            is_answered: columns.int()? == 1,
        })
    }
}

/// A message without its text.
pub(crate) struct MessagePair {
    pub seq: LogSeq,
    pub sender: String,
    pub receiver: String,
    pub at: UnixMicros,
    pub is_failed: bool,
}

impl FromRow for MessagePair {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(MessagePair {
            seq: columns.id()?,
            sender: columns.text()?,
            receiver: columns.text()?,
            at: UnixMicros(columns.int()?),
            is_failed: columns.int()? == 1,
        })
    }
}

/// The sequences of the newest `$3` messages of `$1` before `$2`: from the participant index, and from the unindexed end of the
/// log after `$4`.
macro_rules! newest_messages {
    () => {
        "select seq from (
             select seq from (select seq from parts where who = $1 and class = $5 and seq < $2 order by seq desc limit $3) i
             union
             select seq from (select seq from parts where who = $1 and class = $6 and seq < $2 order by seq desc limit $3) o
             union
             select seq from (select seq from log where seq > $4 and seq < $2 and kind = 'message'
                              and (subject = $1 or actor = $1) order by seq desc limit $3) t) n
         order by seq desc limit $3"
    };
}

/// Where a scan reads.
#[derive(Clone, Copy)]
pub(crate) struct ScanRange {
    /// Only messages before this sequence.
    pub before: LogSeq,
    /// The last sequence in the participant index.
    pub indexed: LogSeq,
}

fn newest_params(agent: AgentId, range: ScanRange, scan_limit: usize) -> [SqlParam<'static>; 6] {
    [
        SqlParam::id(agent),
        SqlParam::id(range.before),
        SqlParam::Int(scan_limit as i64),
        SqlParam::id(range.indexed),
        ParticipantClass::Received.as_param(),
        ParticipantClass::Sent.as_param(),
    ]
}

/// The newest messages that the agent sent and received.
pub(crate) async fn scan_messages(
    tx: &DbConnection<'_>,
    agent: AgentId,
    range: ScanRange,
) -> Result<MessageScan<ScannedMessage>, DbError> {
    const SQL: &str = concat!(
        "select ",
        log::entry_columns!("s.agent_id", "r.agent_id"),
        ", case when exists (select 1 from responses a where a.seq = l.seq) then 1 else 0 end
         from log l join principals s on s.id = l.actor join principals r on r.id = l.subject
         where l.seq in (",
        newest_messages!(),
        ") order by l.seq desc"
    );
    let params = newest_params(agent, range, limits::CONVERSATION_SCAN);
    let (rows, has_all_rows) = tx
        .query_within_bytes(SQL, &params, limits::HISTORY_PAGE_BYTES)
        .await?;
    let is_full = !has_all_rows || rows.len() == limits::CONVERSATION_SCAN;
    let rows = rows
        .into_iter()
        .map(ScannedMessage::from_row)
        .collect::<Result<Vec<_>, _>>()?;
    let next_before = rows.last().filter(|_| is_full).map(|row| row.entry.seq);
    Ok(MessageScan { rows, next_before })
}

/// The lowest sequence among the newest [`limits::PEER_SCAN`] messages of an agent; `None` when it has fewer.
async fn find_scan_floor(
    tx: &DbConnection<'_>,
    agent: AgentId,
    range: ScanRange,
) -> Result<Option<LogSeq>, DbError> {
    const SQL: &str = concat!(
        "select coalesce(min(seq), 0), count(*) from (",
        newest_messages!(),
        ") w"
    );
    let params = newest_params(agent, range, limits::PEER_SCAN);
    let Some(row) = tx.query_first(SQL, &params).await? else {
        return Ok(None);
    };
    let mut columns = row.columns();
    let floor = columns.id()?;
    let count = columns.int()?;
    Ok((count == limits::PEER_SCAN as i64).then_some(floor))
}

/// The messages among which those of two agents are looked for.
#[derive(Clone, Copy)]
pub(crate) struct PeerWindow {
    agent: AgentId,
    /// Whose messages are looked through.
    scanned: AgentId,
    /// The lowest sequence of the window; `None` when it holds everything.
    pub floor: Option<LogSeq>,
}

/// Selects the window for the messages between two agents. Where the peer has few messages, they are looked through instead of
/// the agent's own, so that no number of messages with others hides a conversation.
pub(crate) async fn find_peer_window(
    tx: &DbConnection<'_>,
    agent: AgentId,
    peer: Option<AgentId>,
    range: ScanRange,
) -> Result<PeerWindow, DbError> {
    if let Some(peer) = peer {
        let floor = find_scan_floor(tx, peer, range).await?;
        if floor.is_none() {
            return Ok(PeerWindow {
                agent,
                scanned: peer,
                floor,
            });
        }
    }
    Ok(PeerWindow {
        agent,
        scanned: agent,
        floor: find_scan_floor(tx, agent, range).await?,
    })
}

/// The newest messages of a window between its agent and the one of this name, newest first.
pub(crate) async fn list_peer_messages(
    tx: &DbConnection<'_>,
    window: PeerWindow,
    peer_name: &str,
    range: ScanRange,
    limit: usize,
) -> Result<log::EntryPage, DbError> {
    const SQL: &str = concat!(
        "select ",
        log::entry_columns!("s.agent_id", "r.agent_id"),
        " from log l join principals s on s.id = l.actor join principals r on r.id = l.subject
         where l.seq in (",
        newest_messages!(),
        ") and l.seq >= $7 and ((l.subject = $8 and s.agent_id = $9) or (l.actor = $8 and r.agent_id = $9))
         order by l.seq desc limit $10"
    );
    let [who, before, scan_limit, indexed, received, sent] =
        newest_params(window.scanned, range, limits::PEER_SCAN);
    let params = [
        who,
        before,
        scan_limit,
        indexed,
        received,
        sent,
        SqlParam::id(window.floor.unwrap_or(LogSeq::START)),
        SqlParam::id(window.agent),
        SqlParam::Text(peer_name),
        SqlParam::Int(limit as i64),
    ];
    log::read_page(tx, SQL, &params, limit, limits::HISTORY_PAGE_BYTES).await
}

/// The newest messages of all agents, without their texts.
pub(crate) async fn scan_message_pairs(
    tx: &DbConnection<'_>,
    before: LogSeq,
) -> Result<MessageScan<MessagePair>, DbError> {
    // The window is in entries of every kind, so that a log with few messages is not read to its start.
    const FLOOR: &str = "select coalesce(min(seq), 0), count(*) from (
                             select seq from log where seq < $1 order by seq desc limit $2) w";
    const SQL: &str = "select l.seq, s.agent_id, r.agent_id, l.at, case when l.via = 'failed' then 1 else 0 end
                       from log l join principals s on s.id = l.actor join principals r on r.id = l.subject
                       where l.seq >= $2 and l.seq < $1 and l.kind = 'message' order by l.seq desc";
    let window = SqlParam::Int(limits::CONVERSATION_SCAN as i64);
    let Some(row) = tx
        .query_first(FLOOR, &[SqlParam::id(before), window])
        .await?
    else {
        return Ok(MessageScan {
            rows: Vec::new(),
            next_before: None,
        });
    };
    let mut columns = row.columns();
    let floor: LogSeq = columns.id()?;
    let is_full = columns.int()? == limits::CONVERSATION_SCAN as i64;
    let rows = tx
        .query(SQL, &[SqlParam::id(before), SqlParam::id(floor)])
        .await?
        .into_iter()
        .map(MessagePair::from_row)
        .collect::<Result<Vec<_>, _>>()?;
    Ok(MessageScan {
        rows,
        next_before: is_full.then_some(floor),
    })
}
