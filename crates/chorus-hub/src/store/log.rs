//! The spine: entries in the order of their commits, and the cursor and trace id that each one has.

use super::{DbConnection, DbError, SqlParam};
use chorus_wire::{limits, time::UnixMicros};
use std::sync::Arc;
use uuid::Uuid;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $text:literal),+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($variant),+ }

        impl $name {
            pub const fn as_str(self) -> &'static str { match self { $($name::$variant => $text),+ } }

            pub fn parse(text: &str) -> Result<Self, DbError> {
                match text {
                    $($text => Ok($name::$variant),)+
                    other => Err(DbError::Other(format!("the log has a {} of a newer hub: {other}", stringify!($name)))),
                }
            }
        }
    };
}

words! {
    /// What an entry is. `Activity` is heard by operators only, `Notice` by hubs only; the others are events on a subject's stream, those from `Said`
    /// on the stream of a room.
    EntryKind { Message "message", Receipt "receipt", Channel "channel", Job "job", JobResult "job_result", Activity "activity",
           ChannelMessage "said", ToolCall "tool_call", ToolResult "tool_result", Status "status", ChannelError "error", MemberChange "member",
           CacheInvalidation "notice" }
}

words! {
    /// How a message first went on its way. `Pending`: its webhook has not answered yet.
    DeliveryState { Sse "sse", Webhook "webhook", Queued "queued", Failed "failed", Pending "pending" }
}

/// The subject of entries that concern the hub itself.
pub(crate) const HUB_SUBJECT: i64 = 0;

/// An entry that is to be appended; its place and time are given to it at commit.
#[derive(Clone, Debug)]
pub(crate) struct NewLogEntry {
    pub subject: i64,
    pub subject_name: Arc<str>,
    pub kind: EntryKind,
    pub actor: i64,
    pub actor_name: Arc<str>,
    pub body: Arc<str>,
    /// For a message: what becomes of it when no stream is draining.
    pub fallback: Option<DeliveryState>,
}

/// An entry with its place in the log.
#[derive(Clone, Debug)]
pub(crate) struct LogEntry {
    pub seq: i64,
    pub subject: i64,
    /// Empty where the reader is the subject.
    pub subject_name: Arc<str>,
    pub kind: EntryKind,
    pub actor: i64,
    pub actor_name: Arc<str>,
    pub at: UnixMicros,
    pub body: Arc<str>,
    pub delivery: Option<DeliveryState>,
    pub delivered_at: Option<UnixMicros>,
    /// A live stream that is draining took it when it was published.
    pub accepted: bool,
}

/// The newest entry's place and time, and up to where the parts are kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LogHead {
    pub seq: i64,
    pub at: i64,
    pub indexed_seq: i64,
    /// When this hub last indexed.
    pub indexed_at: UnixMicros,
}

impl LogHead {
    /// The next place: times strictly increase, also when the clock stands still or steps back.
    pub fn allocate_seq(&mut self, now: UnixMicros) -> (i64, UnixMicros) {
        self.seq += 1;
        self.at = now.0.max(self.at + 1);
        (self.seq, UnixMicros(self.at))
    }
}

const SEQ_BITS: u32 = 40;
/// What fits in the low bits of a trace id: a trillion entries.
const SEQ_MASK: u64 = (1 << SEQ_BITS) - 1;
pub(crate) const SALT_MASK: u32 = (1 << 22) - 1;

/// A UUIDv7 made of the entry's time (milliseconds, then the microseconds in the field RFC 9562 leaves for them) and its place:
/// it sorts like both, and finds its entry without an index of its own.
pub(crate) fn compute_trace_id(seq: i64, at: UnixMicros, salt: u32) -> Uuid {
    let (millis, micros) = (at.0.max(0) as u128 / 1_000, at.0.max(0) as u128 % 1_000);
    let low = (u128::from(salt & SALT_MASK) << SEQ_BITS) | u128::from(seq as u64 & SEQ_MASK);
    // rand_a counts in 1/4096 of a millisecond. The salt is the same for a whole database, so order stays with time and place.
    Uuid::from_u128(
        (millis << 80) | (0x7 << 76) | ((micros * 4096 / 1_000) << 64) | (0b10 << 62) | low,
    )
}

/// The place a trace id speaks of; whether it is the trace id of what stands there, only the entry can tell.
pub(crate) fn trace_id_seq(trace_id: &Uuid) -> i64 {
    (trace_id.as_u128() as u64 & SEQ_MASK) as i64
}

pub(super) async fn read_head(tx: &DbConnection<'_>) -> Result<LogHead, DbError> {
    const SQL: &str =
        "select coalesce(max(seq), 0), coalesce((select at from log order by seq desc limit 1), 0),
                              (select value from settings where name = 'indexed') from log";
    match tx.query_first(SQL, &[]).await? {
        Some(row) => Ok(LogHead {
            seq: row.int(0)?,
            at: row.int(1)?,
            indexed_seq: row.int(2)?,
            ..LogHead::default()
        }),
        None => Ok(LogHead::default()),
    }
}

/// Inserts entries whose places are fixed. On PostgreSQL they travel together instead of one round trip each.
pub(super) async fn insert_entries(
    tx: &DbConnection<'_>,
    entries: &[LogEntry],
) -> Result<(), DbError> {
    const SQL: &str = "insert into log (seq, subject, kind, actor, at, body, via) values ($1, $2, $3, $4, $5, $6, $7)";
    let insert_one = async |entry: &LogEntry| {
        let delivery = SqlParam::optional_text(entry.delivery.map(DeliveryState::as_str));
        let params = [
            SqlParam::Int(entry.seq),
            SqlParam::Int(entry.subject),
            SqlParam::Text(entry.kind.as_str()),
            SqlParam::Int(entry.actor),
            SqlParam::Int(entry.at.0),
            SqlParam::Text(&entry.body),
            delivery,
        ];
        tx.execute(SQL, &params).await
    };
    match tx {
        DbConnection::Sqlite(_) => {
            for entry in entries {
                insert_one(entry).await?;
            }
        }
        DbConnection::Postgres(_) => {
            // The first prepares the statement, the others find it prepared.
            let Some((first, rest)) = entries.split_first() else {
                return Ok(());
            };
            insert_one(first).await?;
            futures_util::future::try_join_all(rest.iter().map(insert_one)).await?;
        }
    }
    Ok(())
}

const ENTRY_COLUMNS: usize = 10;

/// An entry from the columns `seq, subject, kind, actor, its name, at, body, via, delivered_at, the subject's name`.
pub(super) fn read_entry_row(mut row: super::SqlRow) -> Result<LogEntry, DbError> {
    debug_assert_eq!(row.0.len(), ENTRY_COLUMNS);
    let delivery = row.maybe_text(7)?;
    Ok(LogEntry {
        seq: row.int(0)?,
        subject: row.int(1)?,
        subject_name: row.maybe_text(9)?.unwrap_or_default().into(),
        kind: EntryKind::parse(&row.text(2)?)?,
        actor: row.int(3)?,
        actor_name: row.maybe_text(4)?.unwrap_or_default().into(),
        at: UnixMicros(row.int(5)?),
        body: row.text(6)?.into(),
        delivery: delivery.as_deref().map(DeliveryState::parse).transpose()?,
        delivered_at: row.maybe_int(8)?.map(UnixMicros),
        accepted: false,
    })
}

/// Some entries in their order; `whole` when there were no more.
pub(crate) struct EntryPage {
    pub entries: Vec<LogEntry>,
    pub is_complete: bool,
}

/// Reads a page that is bounded in entries and in bytes.
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
            .map(read_entry_row)
            .collect::<Result<_, _>>()?,
        is_complete,
    })
}

/// What `subject` heard after `after`: its parts, and those of the last few entries. `indexed` may be from before:
/// an entry that is found both ways is one entry.
pub(crate) async fn list_subject_entries(
    tx: &DbConnection<'_>,
    subject: i64,
    after: i64,
    indexed_seq: i64,
    limit: usize,
) -> Result<EntryPage, DbError> {
    const SQL: &str = "
        select l.seq, l.subject, l.kind, l.actor, p.agent_id, l.at, l.body, l.via, l.delivered_at, ''
        from log l left join principals p on p.id = l.actor
        where l.seq in (
            select seq from (select seq from parts where who = $1 and class = 0 and seq > $2 order by seq limit $3) r
            union all
            select seq from (select seq from parts where who = $1 and class = 2 and seq > $2 order by seq limit $3) o
            union all
            select seq from (select seq from log where seq > $4 and subject = $1 order by seq limit $3) t)
        order by l.seq limit $3";
    let tail_start = after.max(indexed_seq);
    let params = [
        SqlParam::Int(subject),
        SqlParam::Int(after),
        SqlParam::Int(limit as i64),
        SqlParam::Int(tail_start),
    ];
    read_page(tx, SQL, &params, limit, limits::STREAM_QUEUE_BYTES).await
}

/// Everything after `after`, whoever hears it: for a hub that tells its streams what another one wrote.
pub(super) async fn list_all_after(
    tx: &DbConnection<'_>,
    after: i64,
    limit: usize,
) -> Result<Vec<LogEntry>, DbError> {
    const SQL: &str = "
        select l.seq, l.subject, l.kind, l.actor, p.agent_id, l.at, l.body, l.via, l.delivered_at, r.agent_id
        from log l left join principals p on p.id = l.actor left join principals r on r.id = l.subject
        where l.seq > $1 order by l.seq limit $2";
    let rows = tx
        .query(SQL, &[SqlParam::Int(after), SqlParam::Int(limit as i64)])
        .await?;
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        let (seq, at) = (row.int(0)?, UnixMicros(row.int(5)?));
        // What stood between was trimmed while this hub stood still.
        if entries.is_empty() && after > 0 && seq > after + 1 {
            entries.push(unread_entry(seq - 1, at));
        }
        // Of a kind that only a newer hub knows: were it in the way, this one would tell its streams nothing any more.
        entries.push(read_entry_row(row).unwrap_or_else(|_| unread_entry(seq, at)));
    }
    Ok(entries)
}

/// Something that this hub did not read and no stream of its own hears. It may have said that something is over, and so it is to
/// this hub what a notice is that it does not understand.
fn unread_entry(seq: i64, at: UnixMicros) -> LogEntry {
    LogEntry {
        seq,
        subject: HUB_SUBJECT,
        subject_name: "".into(),
        kind: EntryKind::CacheInvalidation,
        actor: HUB_SUBJECT,
        actor_name: "".into(),
        at,
        body: "".into(),
        delivery: None,
        delivered_at: None,
        accepted: false,
    }
}

/// The place of the newest entry, whoever hears it.
pub(crate) async fn newest_seq(tx: &DbConnection<'_>) -> Result<i64, DbError> {
    tx.query_first("select coalesce(max(seq), 0) from log", &[])
        .await?
        .map_or(Ok(0), |row| row.int(0))
}

/// Everything after `after` that operators hear of.
pub(crate) async fn list_operator_entries(
    tx: &DbConnection<'_>,
    after: i64,
    limit: usize,
) -> Result<EntryPage, DbError> {
    const SQL: &str = "
        select l.seq, l.subject, l.kind, l.actor, p.agent_id, l.at, l.body, l.via, l.delivered_at, r.agent_id
        from log l left join principals p on p.id = l.actor left join principals r on r.id = l.subject
        where l.seq > $1 and l.kind in ('message', 'activity')
        order by l.seq limit $2";
    read_page(
        tx,
        SQL,
        &[SqlParam::Int(after), SqlParam::Int(limit as i64)],
        limit,
        limits::STREAM_QUEUE_BYTES,
    )
    .await
}

/// The place just before the first entry at or after `at`. Times increase with places, so twenty looks find it among a million:
/// no index on time, no cost at every write.
pub(crate) async fn find_seq_before(tx: &DbConnection<'_>, at: UnixMicros) -> Result<i64, DbError> {
    let (mut low, mut high) = match tx
        .query_first(
            "select coalesce(min(seq), 1), coalesce(max(seq), 0) from log",
            &[],
        )
        .await?
    {
        Some(row) => (row.int(0)?, row.int(1)? + 1),
        None => (1, 1),
    };
    while low < high {
        let middle = low + (high - low) / 2;
        let found = tx
            .query_first(
                "select seq, at from log where seq >= $1 order by seq limit 1",
                &[SqlParam::Int(middle)],
            )
            .await?;
        match found {
            Some(row) if row.int(1)? < at.0 => low = row.int(0)? + 1,
            Some(_) | None => high = middle,
        }
    }
    Ok(low - 1)
}
