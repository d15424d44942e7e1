//! Messages: log entries with a receiver and a delivery state, and their responses and failures.

use super::log::{self, DeliveryState, LogEntry};
use super::participant_index::ParticipantClass;
use super::{
    AgentId, ColumnReader, DbConnection, DbError, FromRow, LogSeq, RowId, SqlParam, SubjectId,
    WriteTxn,
};
use chorus_wire::{limits, time::UnixMicros};

/// A message with its response and failure.
#[derive(Debug)]
pub(crate) struct MessageRecord {
    pub entry: LogEntry,
    pub response: Option<(String, UnixMicros)>,
    pub failure: Option<(String, String)>,
}

macro_rules! message_columns {
    () => {
        concat!(
            log::entry_columns!("s.agent_id", "r.agent_id"),
            ", a.response, a.at, f.error_code, f.detail"
        )
    };
}

/// Reads `message_columns!`.
impl FromRow for MessageRecord {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(MessageRecord {
            entry: LogEntry::from_columns(columns)?,
            response: columns
                .maybe_text()?
                .zip(columns.maybe_int()?.map(UnixMicros)),
            failure: columns.maybe_text()?.zip(columns.maybe_text()?),
        })
    }
}

/// The message at this sequence.
pub(crate) async fn find_message(
    tx: &DbConnection<'_>,
    seq: LogSeq,
) -> Result<Option<MessageRecord>, DbError> {
    const SQL: &str = concat!(
        "select ",
        message_columns!(),
        " from log l join principals s on s.id = l.actor join principals r on r.id = l.subject
        left join responses a on a.seq = l.seq left join failures f on f.seq = l.seq
        where l.seq = $1 and l.kind = 'message'"
    );
    tx.query_first(SQL, &[SqlParam::id(seq)])
        .await?
        .map(MessageRecord::from_row)
        .transpose()
}

/// The messages that the agent sent and received after a sequence (TRN-56), from the participant index and the unindexed end of
/// the log, like [`log::list_subject_entries`].
pub(crate) async fn list_message_history(
    tx: &DbConnection<'_>,
    agent: AgentId,
    after: LogSeq,
    indexed_seq: LogSeq,
    limit: usize,
) -> Result<log::EntryPage, DbError> {
    const SQL: &str = concat!(
        "select ",
        log::entry_columns!("s.agent_id", "r.agent_id"),
        " from log l join principals s on s.id = l.actor join principals r on r.id = l.subject
        where l.seq in (
            select seq from (select seq from parts where who = $1 and class = $5 and seq > $2 order by seq limit $3) i
            union all
            select seq from (select seq from parts where who = $1 and class = $6 and seq > $2 order by seq limit $3) o
            union all
            select seq from (select seq from log where seq > $4 and kind = 'message' and (subject = $1 or actor = $1)
                             order by seq limit $3) t)
        order by l.seq limit $3"
    );
    let tail_start = after.max(indexed_seq);
    // One more than asked for tells whether more follow.
    let read_limit = limit + 1;
    let params = [
        SqlParam::id(agent),
        SqlParam::id(after),
        SqlParam::Int(read_limit as i64),
        SqlParam::id(tail_start),
        ParticipantClass::Received.as_param(),
        ParticipantClass::Sent.as_param(),
    ];
    let mut page = log::read_page(tx, SQL, &params, read_limit, limits::HISTORY_PAGE_BYTES).await?;
    page.entries.truncate(limit);
    Ok(page)
}

/// The messages that the agent received after a sequence and has not answered, oldest first. Only the newest
/// [`limits::MESSAGES_SCANNED`] received messages are examined.
pub(crate) async fn list_unanswered_messages(
    tx: &DbConnection<'_>,
    agent: AgentId,
    after: LogSeq,
    indexed_seq: LogSeq,
    limit: usize,
) -> Result<log::EntryPage, DbError> {
    const SQL: &str = concat!(
        "select ",
        log::entry_columns!("s.agent_id", "''"),
        " from log l join principals s on s.id = l.actor
        where l.seq in (
            select seq from (select seq from parts where who = $1 and class = $6 and seq > $2 order by seq desc limit $4) i
            union all
            select seq from (select seq from log where seq > $5 and kind = 'message' and subject = $1
                             order by seq desc limit $4) t)
        and not exists (select 1 from responses a where a.seq = l.seq)
        order by l.seq limit $3"
    );
    let tail_start = after.max(indexed_seq);
    let params = [
        SqlParam::id(agent),
        SqlParam::id(after),
        SqlParam::Int(limit as i64),
        SqlParam::Int(limits::MESSAGES_SCANNED as i64),
        SqlParam::id(tail_start),
        ParticipantClass::Received.as_param(),
    ];
    log::read_page(tx, SQL, &params, limit, limits::HISTORY_PAGE_BYTES).await
}

const FIRST_MESSAGES_AFTER: &str = concat!(
    "select ",
    log::entry_columns!("s.agent_id", "r.agent_id"),
    " from log l join principals s on s.id = l.actor join principals r on r.id = l.subject
        where l.seq in (
            select seq from (select seq from parts where who = $1 and class = $7 and seq > $5 order by seq limit $4) i
            union all
            select seq from (select seq from parts where who = $1 and class = $8 and seq > $5 order by seq limit $4) o
            union all
            select seq from (select seq from log where seq > $6 and kind = 'message' and (subject = $1 or actor = $1)
                             order by seq limit $4) t)
        and (cast($2 as bigint) = 0 or (l.subject = $1 and l.actor = $2) or (l.subject = $2 and l.actor = $1))
        order by l.seq limit $3"
);
const LATEST_MESSAGES: &str = concat!(
    "select ",
    log::entry_columns!("s.agent_id", "r.agent_id"),
    " from log l join principals s on s.id = l.actor join principals r on r.id = l.subject
        where l.seq in (
            select seq from (select seq from parts where who = $1 and class = $6 order by seq desc limit $4) i
            union all
            select seq from (select seq from parts where who = $1 and class = $7 order by seq desc limit $4) o
            union all
            select seq from (select seq from log where seq > $5 and kind = 'message' and (subject = $1 or actor = $1)
                             order by seq desc limit $4) t)
        and (cast($2 as bigint) = 0 or (l.subject = $1 and l.actor = $2) or (l.subject = $2 and l.actor = $1))
        order by l.seq desc limit $3"
);

/// The agent's messages, only those with `peer` if one is given: the first after a sequence, or the latest. Both are returned
/// oldest first. With a peer, at most [`limits::MESSAGES_SCANNED`] messages of the agent are examined.
pub(crate) async fn search_messages(
    tx: &DbConnection<'_>,
    agent: AgentId,
    peer: Option<AgentId>,
    after: Option<LogSeq>,
    indexed_seq: LogSeq,
    limit: usize,
) -> Result<log::EntryPage, DbError> {
    let scan_limit = if peer.is_some() {
        limits::MESSAGES_SCANNED
    } else {
        limit
    };
    let agent = SqlParam::id(agent);
    let peer_id = peer.map_or(SqlParam::Int(0), SqlParam::id);
    let row_limit = SqlParam::Int(limit as i64);
    let scan_limit = SqlParam::Int(scan_limit as i64);
    let received = ParticipantClass::Received.as_param();
    let sent = ParticipantClass::Sent.as_param();
    match after {
        Some(after) => {
            let params = [
                agent,
                peer_id,
                row_limit,
                scan_limit,
                SqlParam::id(after),
                SqlParam::id(after.max(indexed_seq)),
                received,
                sent,
            ];
            let max_bytes = limits::HISTORY_PAGE_BYTES;
            log::read_page(tx, FIRST_MESSAGES_AFTER, &params, limit, max_bytes).await
        }
        None => {
            let params = [
                agent,
                peer_id,
                row_limit,
                scan_limit,
                SqlParam::id(indexed_seq),
                received,
                sent,
            ];
            let max_bytes = limits::HISTORY_PAGE_BYTES;
            let mut page = log::read_page(tx, LATEST_MESSAGES, &params, limit, max_bytes).await?;
            page.entries.reverse();
            Ok(page)
        }
    }
}

/// Changes the delivery state from `from` to `to`; false when it is no longer `from`. `Webhook` also sets the delivery time.
pub(crate) async fn change_delivery_state(
    txn: &mut WriteTxn<'_>,
    seq: LogSeq,
    from: DeliveryState,
    to: DeliveryState,
) -> Result<bool, DbError> {
    const SQL: &str = "update log set via = $3, delivered_at = coalesce(delivered_at, $4) where seq = $1 and via = $2
                       returning case when delivered_at is null then 0 else 1 end";
    let at = matches!(to, DeliveryState::Webhook).then_some(txn.now().0);
    let params = [
        SqlParam::id(seq),
        SqlParam::Text(from.as_str()),
        SqlParam::Text(to.as_str()),
        SqlParam::optional_int(at),
    ];
    let Some(row) = txn.tx.query_first(SQL, &params).await? else {
        return Ok(false);
    };
    // A queued message that its receiver has read from the log meanwhile counts as delivered, before and after.
    let is_read = at.is_none() && row.int(0)? == 1;
    let counted_as = |state| match (state, is_read) {
        (DeliveryState::Queued, true) => DeliveryState::Sse,
        (state, true | false) => state,
    };
    txn.counter_deltas.adjust_state_count(counted_as(from), -1);
    txn.counter_deltas.adjust_state_count(counted_as(to), 1);
    Ok(true)
}

/// Sets the delivery time of messages that were now read from a stream. Their delivery state stays.
pub(crate) async fn mark_messages_delivered(
    txn: &mut WriteTxn<'_>,
    seqs: &[LogSeq],
) -> Result<(), DbError> {
    const SQL: &str = "update log set delivered_at = $2
                       where seq = $1 and via in ('queued', 'sse') and delivered_at is null returning via";
    for seq in seqs {
        let row = txn
            .tx
            .query_first(SQL, &[SqlParam::id(*seq), SqlParam::Int(txn.now().0)])
            .await?;
        if row.map(|mut row| row.text(0)).transpose()?.as_deref()
            == Some(DeliveryState::Queued.as_str())
        {
            txn.counter_deltas
                .adjust_state_count(DeliveryState::Queued, -1);
            txn.counter_deltas.adjust_state_count(DeliveryState::Sse, 1);
        }
    }
    Ok(())
}

/// Records that the text of a message was shown to its receiver; false when it was before. The first time stands.
pub(crate) async fn mark_message_shown(
    txn: &mut WriteTxn<'_>,
    seq: LogSeq,
) -> Result<bool, DbError> {
    const SQL: &str =
        "update log set shown_at = $2 where seq = $1 and kind = 'message' and shown_at is null";
    let params = [SqlParam::id(seq), SqlParam::Int(txn.now().0)];
    Ok(txn.tx.execute(SQL, &params).await? == 1)
}

/// Max messages that one transaction fails, because all other writes wait for it.
const ABANDON_BATCH: i64 = 500;

/// Fails the queued messages of a receiver that unregistered. If there are many, retention steps fail the rest later.
pub(crate) async fn abandon_queued(
    txn: &mut WriteTxn<'_>,
    subject: SubjectId,
) -> Result<(), DbError> {
    const LATER: &str =
        "insert into abandoned (subject, after) values ($1, $2) on conflict (subject) do nothing";
    let tail_start = txn.indexed_seq();
    if let Some(after) = fail_queued_batch(txn, subject, LogSeq::START, tail_start).await? {
        txn.tx
            .execute(LATER, &[SqlParam::id(subject), SqlParam::id(after)])
            .await?;
    }
    Ok(())
}

/// Fails one batch of queued messages of an unregistered receiver; 0 when there is none.
pub(super) async fn abandon_next_batch(txn: &mut WriteTxn<'_>) -> Result<u64, DbError> {
    let row = txn
        .tx
        .query_first(
            "select subject, after from abandoned order by subject limit 1",
            &[],
        )
        .await?;
    let Some(row) = row else { return Ok(0) };
    let mut columns = row.columns();
    let subject = columns.id()?;
    let after = columns.id()?;
    match fail_queued_batch(txn, subject, after, LogSeq::AFTER_ALL).await? {
        Some(after) => {
            let params = [SqlParam::id(subject), SqlParam::id(after)];
            txn.tx
                .execute(
                    "update abandoned set after = $2 where subject = $1",
                    &params,
                )
                .await
        }
        None => {
            txn.tx
                .execute(
                    "delete from abandoned where subject = $1",
                    &[SqlParam::id(subject)],
                )
                .await
        }
    }
}

/// Fails the next batch of indexed queued messages of `subject` after a sequence, and all unindexed ones after `tail_start`.
/// Returns the sequence to continue from, if there is more.
async fn fail_queued_batch(
    txn: &mut WriteTxn<'_>,
    subject: SubjectId,
    after: LogSeq,
    tail_start: LogSeq,
) -> Result<Option<LogSeq>, DbError> {
    const PAGE: &str = "select coalesce(max(seq), cast($2 as bigint)), count(*) from (
                            select seq from parts where who = $1 and class = $4 and seq > $2 order by seq limit $3) p";
    macro_rules! where_still_queued {
        () => {
            " where via = 'queued' and delivered_at is null and kind = 'message' and seq in (
                  select seq from parts where who = $1 and class = $5 and seq > $2 and seq <= $3
                  union all
                  select seq from log where seq > $4 and subject = $1)"
        };
    }
    const INSERT_FAILURES: &str = concat!(
        "insert into failures (seq, error_code, detail) select seq, cast($6 as text), cast($7 as text) from log",
        where_still_queued!(),
        " on conflict (seq) do nothing"
    );
    const MARK_FAILED: &str = concat!("update log set via = 'failed'", where_still_queued!());
    const DETAIL: &str = "the receiver unregistered before it came for the message";
    let class = ParticipantClass::Received.as_param();
    let receiver = SqlParam::id(subject);
    let after_seq = SqlParam::id(after);
    let batch_size = SqlParam::Int(ABANDON_BATCH);
    let page = txn
        .tx
        .query_first(PAGE, &[receiver, after_seq, batch_size, class])
        .await?;
    let mut last_seq = after;
    let mut count = 0;
    if let Some(row) = page {
        let mut columns = row.columns();
        last_seq = columns.id()?;
        count = columns.int()?;
    }
    let [through_seq, tail_start] = [last_seq, tail_start].map(SqlParam::id);
    let code = SqlParam::Text(chorus_wire::ErrorCode::AgentNotFound.as_str());
    txn.tx
        .execute(
            INSERT_FAILURES,
            &[
                receiver,
                after_seq,
                through_seq,
                tail_start,
                class,
                code,
                SqlParam::Text(DETAIL),
            ],
        )
        .await?;
    let failed = txn
        .tx
        .execute(
            MARK_FAILED,
            &[receiver, after_seq, through_seq, tail_start, class],
        )
        .await? as i64;
    txn.counter_deltas
        .adjust_state_count(DeliveryState::Queued, -failed);
    txn.counter_deltas
        .adjust_state_count(DeliveryState::Failed, failed);
    Ok((count == ABANDON_BATCH).then_some(last_seq))
}

/// Stores the response to a message. The first one stands, also when the endpoint and the receiver itself both respond.
pub(crate) async fn insert_response(
    tx: &DbConnection<'_>,
    seq: LogSeq,
    response: &str,
    at: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "insert into responses (seq, response, at) values ($1, $2, $3) on conflict (seq) do nothing";
    tx.execute(
        SQL,
        &[
            SqlParam::id(seq),
            SqlParam::Text(response),
            SqlParam::Int(at.0),
        ],
    )
    .await
    .map(drop)
}

pub(crate) async fn insert_failure(
    tx: &DbConnection<'_>,
    seq: LogSeq,
    code: &str,
    detail: &str,
) -> Result<(), DbError> {
    const SQL: &str = "insert into failures (seq, error_code, detail) values ($1, $2, $3) on conflict (seq) do nothing";
    tx.execute(
        SQL,
        &[
            SqlParam::id(seq),
            SqlParam::Text(code),
            SqlParam::Text(detail),
        ],
    )
    .await
    .map(drop)
}

/// Makes a failed message pending again.
pub(crate) async fn withdraw_failure(txn: &mut WriteTxn<'_>, seq: LogSeq) -> Result<(), DbError> {
    const SQL: &str = "delete from failures where seq = $1";
    txn.tx.execute(SQL, &[SqlParam::id(seq)]).await?;
    change_delivery_state(txn, seq, DeliveryState::Failed, DeliveryState::Pending)
        .await
        .map(drop)
}

/// The messages after a sequence and from before `until` whose webhook has no outcome.
pub(crate) async fn list_pending_webhooks(
    tx: &DbConnection<'_>,
    after: LogSeq,
    until: UnixMicros,
    limit: usize,
) -> Result<Vec<LogSeq>, DbError> {
    const SQL: &str =
        "select seq from log where via = 'pending' and seq > $1 and at < $2 order by seq limit $3";
    let params = [
        SqlParam::id(after),
        SqlParam::Int(until.0),
        SqlParam::Int(limit as i64),
    ];
    let rows = tx.query(SQL, &params).await?;
    rows.iter().map(|row| row.id(0)).collect()
}
