//! The log: one append-only table of entries in commit order, each with a sequence, a time and a trace id.

use super::participant_index::ParticipantClass;
use super::sqlite;
use super::{ColumnReader, DbConnection, DbError, FromRow, LogSeq, SqlParam, SqlRow, SubjectId};
use chorus_wire::{limits, string_enum, time::UnixMicros};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use uuid::Uuid;

string_enum! {
    /// What an entry is. Only operators receive `Activity`, only hubs receive `CacheInvalidation`. The others are events on the
    /// stream of their subject; from `ChannelMessage` on, the subject is a channel.
    EntryKind {
        Message "message",
        Receipt "receipt",
        Shown "shown",
        Channel "channel",
        Job "job",
        JobResult "job_result",
        JobUpdate "job_update",
        ChannelInvite "channel_invite",
        Activity "activity",
        ChannelMessage "said",
        ToolCall "tool_call",
        ToolResult "tool_result",
        Status "status",
        ChannelError "error",
        MemberChange "member",
        ArtifactChange "artifact",
        FilePut "file",
        CacheInvalidation "notice",
    }
}

string_enum! {
    /// How a message was first delivered. `Pending`: its webhook has not answered yet.
    DeliveryState {
        Sse "sse",
        Webhook "webhook",
        Queued "queued",
        Failed "failed",
        Pending "pending",
    }
}

/// An entry to append. It gets its sequence and time in the transaction that appends it.
#[derive(Clone, Debug)]
pub(crate) struct NewLogEntry {
    pub subject: SubjectId,
    pub subject_name: Arc<str>,
    pub kind: EntryKind,
    pub actor: SubjectId,
    pub actor_name: Arc<str>,
    pub body: Arc<str>,
    /// For a message: its delivery state when no stream of the receiver is draining.
    pub fallback: Option<DeliveryState>,
}

/// An entry with its sequence in the log.
#[derive(Clone, Debug)]
pub(crate) struct LogEntry {
    pub seq: LogSeq,
    pub subject: SubjectId,
    /// Empty where the reader is the subject itself.
    pub subject_name: Arc<str>,
    pub kind: EntryKind,
    pub actor: SubjectId,
    pub actor_name: Arc<str>,
    pub at: UnixMicros,
    pub body: Arc<str>,
    pub delivery: Option<DeliveryState>,
    pub delivered_at: Option<UnixMicros>,
    /// When the text of a message was first shown to its receiver.
    pub shown_at: Option<UnixMicros>,
    /// The part of the body that is stored once for several entries.
    pub shared: Option<SharedPart>,
    /// A draining live stream took the entry when it was published.
    pub accepted: bool,
}

/// A part of a body that several entries have in common (D-108). It is stored once, the rest with each entry.
#[derive(Clone, Debug)]
pub(crate) struct SharedPart {
    /// The sequence of the message that the entries deliver.
    pub id: LogSeq,
    pub range: Range<usize>,
}

impl LogEntry {
    /// The body as the table keeps it: without the part that is stored elsewhere.
    fn own_body(&self) -> Cow<'_, str> {
        match &self.shared {
            None => Cow::Borrowed(&self.body),
            Some(part) => {
                let before = &self.body[..part.range.start];
                Cow::Owned([before, &self.body[part.range.end..]].concat())
            }
        }
    }
}

/// Stores the part of a body that the deliveries of the message `id` share.
pub(crate) async fn insert_shared_part(
    tx: &DbConnection<'_>,
    id: LogSeq,
    text: &str,
) -> Result<(), DbError> {
    tx.execute(
        "insert into shared_bodies (id, text) values ($1, $2)",
        &[SqlParam::id(id), SqlParam::Text(text)],
    )
    .await
    .map(drop)
}

/// Deletes the shared parts whose entries are all at or before `last_seq`. A message and its deliveries have sequences in a row.
pub(super) async fn delete_shared_parts(
    tx: &DbConnection<'_>,
    last_seq: LogSeq,
) -> Result<(), DbError> {
    let last_unused = last_seq.0 - limits::MEMBERS_PER_CHANNEL as i64;
    tx.execute(
        "delete from shared_bodies where id <= $1",
        &[SqlParam::Int(last_unused)],
    )
    .await
    .map(drop)
}

/// The sequence and time of the newest entry, and the last sequence in the participant index.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LogHead {
    pub seq: LogSeq,
    pub at: i64,
    pub indexed_seq: LogSeq,
    /// When this hub last wrote the participant index.
    pub indexed_at: UnixMicros,
}

impl LogHead {
    /// The next sequence and its time. Times strictly increase, also when the clock stands still or steps back.
    pub fn allocate_seq(&mut self, now: UnixMicros) -> (LogSeq, UnixMicros) {
        self.seq = self.seq.next();
        self.at = now.0.max(self.at + 1);
        (self.seq, UnixMicros(self.at))
    }
}

const SEQ_BITS: u32 = 40;
/// The low bits of a trace id hold the sequence; they are enough for a trillion entries.
const SEQ_MASK: u64 = (1 << SEQ_BITS) - 1;
pub(crate) const SALT_MASK: u32 = (1 << 22) - 1;

/// A UUIDv7 made of the entry's time (milliseconds, then the microseconds in the field that RFC 9562 leaves for them) and its
/// sequence. It sorts like both, and leads to its entry without an index of its own.
pub(crate) fn compute_trace_id(seq: LogSeq, at: UnixMicros, salt: u32) -> Uuid {
    let at_micros = at.0.max(0) as u128;
    let millis = at_micros / 1_000;
    let micros = at_micros % 1_000;
    let low = (u128::from(salt & SALT_MASK) << SEQ_BITS) | u128::from(seq.to_u64() & SEQ_MASK);
    // rand_a counts in 1/4096 of a millisecond. One database has one salt, so ids sort by time and sequence.
    Uuid::from_u128(
        (millis << 80) | (0x7 << 76) | ((micros * 4096 / 1_000) << 64) | (0b10 << 62) | low,
    )
}

/// The sequence in a trace id. The caller compares the trace id of the entry found there, because a client may send any UUID.
pub(crate) fn trace_id_seq(trace_id: &Uuid) -> LogSeq {
    LogSeq((trace_id.as_u128() as u64 & SEQ_MASK) as i64)
}

pub(super) async fn read_head(tx: &DbConnection<'_>) -> Result<LogHead, DbError> {
    const SQL: &str =
        "select coalesce(max(seq), 0), coalesce((select at from log order by seq desc limit 1), 0),
                              (select value from settings where name = 'indexed') from log";
    match tx.query_first(SQL, &[]).await? {
        Some(row) => {
            let mut columns = row.columns();
            Ok(LogHead {
                seq: columns.id()?,
                at: columns.int()?,
                indexed_seq: columns.id()?,
                ..LogHead::default()
            })
        }
        None => Ok(LogHead::default()),
    }
}

/// Inserts entries that have their sequences. On PostgreSQL the inserts are pipelined instead of one round trip each.
pub(super) async fn insert_entries(
    tx: &DbConnection<'_>,
    entries: &[LogEntry],
) -> Result<(), DbError> {
    const SQL: &str =
        "insert into log (seq, subject, kind, actor, at, body, via, shared, shared_at)
                       values ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    match tx {
        DbConnection::Sqlite(connection) => {
            // Prepared once for all: finding it in the cache again costs an allocation and a comparison of the text.
            let mut insert = sqlite::PreparedStatement::prepare(connection, SQL)?;
            for entry in entries {
                insert.execute(&entry_params(entry, &entry.own_body()))?;
            }
        }
        DbConnection::Postgres(_) => {
            let insert_one = async |entry: &LogEntry| {
                tx.execute(SQL, &entry_params(entry, &entry.own_body()))
                    .await
            };
            // The first insert prepares the statement; the others find it in the cache.
            let Some((first, rest)) = entries.split_first() else {
                return Ok(());
            };
            insert_one(first).await?;
            futures_util::future::try_join_all(rest.iter().map(insert_one)).await?;
        }
    }
    Ok(())
}

fn entry_params<'a>(entry: &'a LogEntry, own_body: &'a str) -> [SqlParam<'a>; 9] {
    let shared = entry.shared.as_ref();
    [
        SqlParam::id(entry.seq),
        SqlParam::id(entry.subject),
        SqlParam::Text(entry.kind.as_str()),
        SqlParam::id(entry.actor),
        SqlParam::Int(entry.at.0),
        SqlParam::Text(own_body),
        SqlParam::optional_text(entry.delivery.map(DeliveryState::as_str)),
        SqlParam::optional_int(shared.map(|part| part.id.0)),
        SqlParam::optional_int(shared.map(|part| part.range.start as i64)),
    ]
}

/// The columns of an entry of the log `l`, with the expressions for the names of its actor and its subject.
macro_rules! entry_columns {
    ($actor_name:literal, $subject_name:literal) => {
        concat!(
            "l.seq, l.subject, l.kind, l.actor, ",
            $actor_name,
            ", l.at, l.body, l.via, l.delivered_at, l.shown_at, ",
            $subject_name,
            ", l.shared, l.shared_at, (select b.text from shared_bodies b where b.id = l.shared)"
        )
    };
}
pub(super) use entry_columns;

const SEQ_COLUMN: usize = 0;
const AT_COLUMN: usize = 5;

/// A text that this hub does not know was stored by a newer one.
fn parse_stored<T>(text: &str, parse: fn(&str) -> Option<T>) -> Result<T, DbError> {
    parse(text).ok_or_else(|| DbError::Other(format!("the log has {text}, of a newer hub")))
}

/// Reads `entry_columns!`.
impl FromRow for LogEntry {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        let mut entry = LogEntry {
            seq: columns.id()?,
            subject: columns.id()?,
            kind: parse_stored(&columns.text()?, EntryKind::parse)?,
            actor: columns.id()?,
            actor_name: columns.maybe_text()?.unwrap_or_default().into(),
            at: UnixMicros(columns.int()?),
            body: columns.text()?.into(),
            delivery: columns
                .maybe_text()?
                .as_deref()
                .map(|text| parse_stored(text, DeliveryState::parse))
                .transpose()?,
            delivered_at: columns.maybe_int()?.map(UnixMicros),
            shown_at: columns.maybe_int()?.map(UnixMicros),
            subject_name: columns.maybe_text()?.unwrap_or_default().into(),
            shared: None,
            accepted: false,
        };
        let shared_id = columns.maybe_int()?;
        let start = columns.maybe_int()?;
        let text = columns.maybe_text()?;
        if let (Some(id), Some(start), Some(text)) = (shared_id, start, text) {
            let start = start as usize;
            let lost =
                || DbError::Other(format!("entry {} does not fit its shared part", entry.seq));
            let (before, after) = entry.body.split_at_checked(start).ok_or_else(lost)?;
            let body = [before, &text, after].concat();
            entry.body = body.into();
            entry.shared = Some(SharedPart {
                id: LogSeq(id),
                range: start..start + text.len(),
            });
        }
        Ok(entry)
    }
}

/// The sequence and time in `entry_columns!`, also of an entry whose kind this hub does not know.
fn read_entry_position(row: &SqlRow) -> Result<(LogSeq, UnixMicros), DbError> {
    let seq = row.id(SEQ_COLUMN)?;
    let at = row.int(AT_COLUMN)?;
    Ok((seq, UnixMicros(at)))
}

/// A page of entries in the order of the query; `is_complete` when no more follow.
pub(crate) struct EntryPage {
    pub entries: Vec<LogEntry>,
    pub is_complete: bool,
}

/// Reads a page, bounded in entries and in bytes.
pub(super) async fn read_page(
    tx: &DbConnection<'_>,
    sql: &'static str,
    params: &[SqlParam<'_>],
    limit: usize,
    max_bytes: usize,
) -> Result<EntryPage, DbError> {
    let (rows, has_all_rows) = tx.query_within_bytes(sql, params, max_bytes).await?;
    let is_complete = has_all_rows && rows.len() < limit;
    Ok(EntryPage {
        entries: rows
            .into_iter()
            .map(LogEntry::from_row)
            .collect::<Result<_, _>>()?,
        is_complete,
    })
}

/// The entries on the stream of `subject` after a sequence: from the participant index, and by a scan of the log after
/// `indexed_seq`. `indexed_seq` may be out of date; an entry that is found both ways is returned once.
pub(crate) async fn list_subject_entries(
    tx: &DbConnection<'_>,
    subject: SubjectId,
    after: LogSeq,
    indexed_seq: LogSeq,
    limit: usize,
) -> Result<EntryPage, DbError> {
    const SQL: &str = concat!(
        "select ",
        entry_columns!("p.agent_id", "''"),
        " from log l left join principals p on p.id = l.actor
        where l.seq in (
            select seq from (select seq from parts where who = $1 and class = $5 and seq > $2 order by seq limit $3) r
            union all
            select seq from (select seq from parts where who = $1 and class = $6 and seq > $2 order by seq limit $3) o
            union all
            select seq from (select seq from log where seq > $4 and subject = $1 order by seq limit $3) t)
        order by l.seq limit $3"
    );
    let tail_start = after.max(indexed_seq);
    let params = [
        SqlParam::id(subject),
        SqlParam::id(after),
        SqlParam::Int(limit as i64),
        SqlParam::id(tail_start),
        ParticipantClass::Received.as_param(),
        ParticipantClass::Heard.as_param(),
    ];
    read_page(tx, SQL, &params, limit, limits::STREAM_QUEUE_BYTES).await
}

/// All entries after a sequence, for every subject: a hub publishes to its streams what other hubs wrote.
pub(super) async fn list_all_after(
    tx: &DbConnection<'_>,
    after: LogSeq,
    limit: usize,
) -> Result<Vec<LogEntry>, DbError> {
    const SQL: &str = concat!(
        "select ",
        entry_columns!("p.agent_id", "r.agent_id"),
        " from log l left join principals p on p.id = l.actor left join principals r on r.id = l.subject
        where l.seq > $1 order by l.seq limit $2"
    );
    let rows = tx
        .query(SQL, &[SqlParam::id(after), SqlParam::Int(limit as i64)])
        .await?;
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        let (seq, at) = read_entry_position(&row)?;
        // A gap: the entries in it were trimmed while this hub was stalled.
        if entries.is_empty() && after > LogSeq::START && seq > after.next() {
            entries.push(unread_entry(seq.previous(), at));
        }
        // An entry of a kind that only a newer hub knows must not stop this hub from publishing the entries after it.
        entries.push(LogEntry::from_row(row).unwrap_or_else(|_| unread_entry(seq, at)));
    }
    Ok(entries)
}

/// Stands for an entry that this hub could not read; no stream receives it. The entry may have been a cache invalidation, so
/// the hub treats it as one that it cannot parse.
fn unread_entry(seq: LogSeq, at: UnixMicros) -> LogEntry {
    LogEntry {
        seq,
        subject: SubjectId::HUB,
        subject_name: "".into(),
        kind: EntryKind::CacheInvalidation,
        actor: SubjectId::HUB,
        actor_name: "".into(),
        at,
        body: "".into(),
        delivery: None,
        delivered_at: None,
        shown_at: None,
        shared: None,
        accepted: false,
    }
}

/// The sequence of the newest entry of any subject.
pub(crate) async fn newest_seq(tx: &DbConnection<'_>) -> Result<LogSeq, DbError> {
    tx.query_first("select coalesce(max(seq), 0) from log", &[])
        .await?
        .map_or(Ok(LogSeq::START), |row| row.id(0))
}

/// The entries after a sequence that operators receive.
pub(crate) async fn list_operator_entries(
    tx: &DbConnection<'_>,
    after: LogSeq,
    limit: usize,
) -> Result<EntryPage, DbError> {
    const SQL: &str = concat!(
        "select ",
        entry_columns!("p.agent_id", "r.agent_id"),
        " from log l left join principals p on p.id = l.actor left join principals r on r.id = l.subject
        where l.seq > $1 and l.kind in ('message', 'activity')
        order by l.seq limit $2"
    );
    read_page(
        tx,
        SQL,
        &[SqlParam::id(after), SqlParam::Int(limit as i64)],
        limit,
        limits::STREAM_QUEUE_BYTES,
    )
    .await
}

/// The entries after one sequence and up to another, in pages, so that no query is larger than a write group.
pub(super) async fn list_entries_between(
    tx: &DbConnection<'_>,
    after_seq: LogSeq,
    last_seq: LogSeq,
) -> Result<Vec<LogEntry>, DbError> {
    let mut entries: Vec<LogEntry> = Vec::new();
    loop {
        let after = entries.last().map_or(after_seq, |entry| entry.seq);
        if after >= last_seq {
            return Ok(entries);
        }
        let limit =
            (last_seq.distance_from(after) as usize).min(crate::limits::WRITE_GROUP_REQUESTS);
        let page = list_all_after(tx, after, limit).await?;
        if page.is_empty() {
            return Ok(entries);
        }
        entries.extend(page);
    }
}
