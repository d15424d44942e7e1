//! Messages: entries of the log with a receiver, an outcome and perhaps a response.

use super::log::{self, DeliveryState, LogEntry};
use super::{DbConnection, DbError, SqlParam, SqlRow, WriteTxn};
use chorus_wire::{limits, time::UnixMicros};

/// A message with everything that is known of it.
#[derive(Debug)]
pub(crate) struct MessageRecord {
    pub entry: LogEntry,
    pub response: Option<(String, UnixMicros)>,
    pub failure: Option<(String, String)>,
}

/// The message at this place.
pub(crate) async fn find_message(
    tx: &DbConnection<'_>,
    seq: i64,
) -> Result<Option<MessageRecord>, DbError> {
    const SQL: &str = "
        select l.seq, l.subject, l.kind, l.actor, s.agent_id, l.at, l.body, l.via, l.delivered_at,
               r.agent_id, a.response, a.at, f.error_code, f.detail
        from log l join principals s on s.id = l.actor join principals r on r.id = l.subject
        left join responses a on a.seq = l.seq left join failures f on f.seq = l.seq
        where l.seq = $1 and l.kind = 'message'";
    let Some(mut row) = tx.query_first(SQL, &[SqlParam::Int(seq)]).await? else {
        return Ok(None);
    };
    let mut rest = SqlRow(row.0.split_off(10));
    let response = rest.maybe_text(0)?.zip(rest.maybe_int(1)?.map(UnixMicros));
    let failure = rest.maybe_text(2)?.zip(rest.maybe_text(3)?);
    Ok(Some(MessageRecord {
        response,
        failure,
        entry: log::read_entry_row(row)?,
    }))
}

/// What this agent sent and received after `after` (TRN-56): see `log::heard` for how it is found.
pub(crate) async fn list_message_history(
    tx: &DbConnection<'_>,
    agent: i64,
    after: i64,
    indexed_seq: i64,
    limit: usize,
) -> Result<Vec<LogEntry>, DbError> {
    const SQL: &str = "
        select l.seq, l.subject, l.kind, l.actor, s.agent_id, l.at, l.body, l.via, l.delivered_at, r.agent_id
        from log l join principals s on s.id = l.actor join principals r on r.id = l.subject
        where l.seq in (
            select seq from (select seq from parts where who = $1 and class = 0 and seq > $2 order by seq limit $3) i
            union all
            select seq from (select seq from parts where who = $1 and class = 1 and seq > $2 order by seq limit $3) o
            union all
            select seq from (select seq from log where seq > $4 and kind = 'message' and (subject = $1 or actor = $1)
                             order by seq limit $3) t)
        order by l.seq limit $3";
    let tail = after.max(indexed_seq);
    Ok(log::read_page(
        tx,
        SQL,
        &[
            SqlParam::Int(agent),
            SqlParam::Int(after),
            SqlParam::Int(limit as i64),
            SqlParam::Int(tail),
        ],
        limit,
        limits::HISTORY_PAGE_BYTES,
    )
    .await?
    .entries)
}

/// What `me` received after `after` and has not answered, oldest first. Only the newest are looked through.
pub(crate) async fn list_unanswered_messages(
    tx: &DbConnection<'_>,
    agent: i64,
    after: i64,
    indexed_seq: i64,
    limit: usize,
) -> Result<log::EntryPage, DbError> {
    const SQL: &str = "
        select l.seq, l.subject, l.kind, l.actor, s.agent_id, l.at, l.body, l.via, l.delivered_at, ''
        from log l join principals s on s.id = l.actor
        where l.seq in (
            select seq from (select seq from parts where who = $1 and class = 0 and seq > $2 order by seq desc limit $4) i
            union all
            select seq from (select seq from log where seq > $5 and kind = 'message' and subject = $1
                             order by seq desc limit $4) t)
        and not exists (select 1 from responses a where a.seq = l.seq)
        order by l.seq limit $3";
    let (row_limit, tail) = (
        SqlParam::Int(limit as i64),
        SqlParam::Int(after.max(indexed_seq)),
    );
    let params = [
        SqlParam::Int(agent),
        SqlParam::Int(after),
        row_limit,
        SqlParam::Int(limits::MESSAGES_SCANNED as i64),
        tail,
    ];
    log::read_page(tx, SQL, &params, limit, limits::HISTORY_PAGE_BYTES).await
}

/// Messages of `me`, those with `peer` where one is named: the first after a place, or the latest; oldest first either way. Of
/// those with a peer, only so many of `me` are looked through.
pub(crate) async fn search_messages(
    tx: &DbConnection<'_>,
    agent: i64,
    peer: Option<i64>,
    after: Option<i64>,
    indexed_seq: i64,
    limit: usize,
) -> Result<log::EntryPage, DbError> {
    const FIRST: &str = "
        select l.seq, l.subject, l.kind, l.actor, s.agent_id, l.at, l.body, l.via, l.delivered_at, r.agent_id
        from log l join principals s on s.id = l.actor join principals r on r.id = l.subject
        where l.seq in (
            select seq from (select seq from parts where who = $1 and class = 0 and seq > $5 order by seq limit $4) i
            union all
            select seq from (select seq from parts where who = $1 and class = 1 and seq > $5 order by seq limit $4) o
            union all
            select seq from (select seq from log where seq > $6 and kind = 'message' and (subject = $1 or actor = $1)
                             order by seq limit $4) t)
        and (cast($2 as bigint) = 0 or (l.subject = $1 and l.actor = $2) or (l.subject = $2 and l.actor = $1))
        order by l.seq limit $3";
    const LATEST: &str = "
        select l.seq, l.subject, l.kind, l.actor, s.agent_id, l.at, l.body, l.via, l.delivered_at, r.agent_id
        from log l join principals s on s.id = l.actor join principals r on r.id = l.subject
        where l.seq in (
            select seq from (select seq from parts where who = $1 and class = 0 order by seq desc limit $4) i
            union all
            select seq from (select seq from parts where who = $1 and class = 1 order by seq desc limit $4) o
            union all
            select seq from (select seq from log where seq > $5 and kind = 'message' and (subject = $1 or actor = $1)
                             order by seq desc limit $4) t)
        and (cast($2 as bigint) = 0 or (l.subject = $1 and l.actor = $2) or (l.subject = $2 and l.actor = $1))
        order by l.seq desc limit $3";
    let scan_limit = if peer.is_some() {
        limits::MESSAGES_SCANNED
    } else {
        limit
    };
    let [agent, peer_id, row_limit, scan_limit] =
        [agent, peer.unwrap_or(0), limit as i64, scan_limit as i64].map(SqlParam::Int);
    match after {
        Some(after) => {
            let params = [
                agent,
                peer_id,
                row_limit,
                scan_limit,
                SqlParam::Int(after),
                SqlParam::Int(after.max(indexed_seq)),
            ];
            log::read_page(tx, FIRST, &params, limit, limits::HISTORY_PAGE_BYTES).await
        }
        None => {
            let params = [
                agent,
                peer_id,
                row_limit,
                scan_limit,
                SqlParam::Int(indexed_seq),
            ];
            let mut page =
                log::read_page(tx, LATEST, &params, limit, limits::HISTORY_PAGE_BYTES).await?;
            page.entries.reverse();
            Ok(page)
        }
    }
}

/// Settles a message that has `from`; false when it no longer does. A webhook is a delivery, and has a time.
pub(crate) async fn change_delivery_state(
    txn: &mut WriteTxn<'_>,
    seq: i64,
    from: DeliveryState,
    to: DeliveryState,
) -> Result<bool, DbError> {
    const SQL: &str = "update log set via = $3, delivered_at = coalesce(delivered_at, $4) where seq = $1 and via = $2
                       returning case when delivered_at is null then 0 else 1 end";
    let at = matches!(to, DeliveryState::Webhook).then_some(txn.now().0);
    let params = [
        SqlParam::Int(seq),
        SqlParam::Text(from.as_str()),
        SqlParam::Text(to.as_str()),
        SqlParam::optional_int(at),
    ];
    let Some(row) = txn.tx.query_first(SQL, &params).await? else {
        return Ok(false);
    };
    // What its receiver has meanwhile read from the log does not wait, whatever it is called.
    if !(to == DeliveryState::Queued && row.int(0)? == 1) {
        txn.counter_deltas.adjust_state_count(from, -1);
        txn.counter_deltas.adjust_state_count(to, 1);
    }
    Ok(true)
}

/// Messages that waited have now been read from a stream; how they first went on their way stays as it was.
pub(crate) async fn mark_messages_delivered(
    txn: &mut WriteTxn<'_>,
    seqs: &[i64],
) -> Result<(), DbError> {
    const SQL: &str = "update log set delivered_at = $2
                       where seq = $1 and via in ('queued', 'sse') and delivered_at is null returning via";
    for seq in seqs {
        let row = txn
            .tx
            .query_first(SQL, &[SqlParam::Int(*seq), SqlParam::Int(txn.now().0)])
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

/// Messages that are given up in one transaction: everybody else's writes wait meanwhile.
const ABANDON_BATCH: i64 = 500;

/// The receiver is gone, and nobody will come for what waited for it. Where that is much, the rest follows step by step.
pub(crate) async fn abandon_queued(txn: &mut WriteTxn<'_>, subject: i64) -> Result<(), DbError> {
    const LATER: &str =
        "insert into abandoned (subject, after) values ($1, $2) on conflict (subject) do nothing";
    let tail_start = txn.indexed_seq();
    if let Some(after) = fail_queued_batch(txn, subject, 0, tail_start).await? {
        txn.tx
            .execute(LATER, &[subject, after].map(SqlParam::Int))
            .await?;
    }
    Ok(())
}

/// One step for a receiver that is gone; 0 when there is none.
pub(super) async fn abandon_next_batch(txn: &mut WriteTxn<'_>) -> Result<u64, DbError> {
    let row = txn
        .tx
        .query_first(
            "select subject, after from abandoned order by subject limit 1",
            &[],
        )
        .await?;
    let Some(row) = row else { return Ok(0) };
    let (subject, after) = (row.int(0)?, row.int(1)?);
    match fail_queued_batch(txn, subject, after, i64::MAX).await? {
        Some(after) => {
            let params = [subject, after].map(SqlParam::Int);
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
                    &[SqlParam::Int(subject)],
                )
                .await
        }
    }
}

/// Gives up some of what waited for `subject` after a place, and what is behind the index from `tail` on; the place to go on
/// from, if there is more.
async fn fail_queued_batch(
    txn: &mut WriteTxn<'_>,
    subject: i64,
    after: i64,
    tail_start: i64,
) -> Result<Option<i64>, DbError> {
    const PAGE: &str = "select coalesce(max(seq), cast($2 as bigint)), count(*) from (
                            select seq from parts where who = $1 and class = 0 and seq > $2 order by seq limit $3) p";
    macro_rules! waiting {
        () => {
            " where via = 'queued' and delivered_at is null and kind = 'message' and seq in (
                  select seq from parts where who = $1 and class = 0 and seq > $2 and seq <= $3
                  union all
                  select seq from log where seq > $4 and subject = $1)"
        };
    }
    const INSERT_FAILURES: &str = concat!(
        "insert into failures (seq, error_code, detail) select seq, cast($5 as text), cast($6 as text) from log",
        waiting!(),
        " on conflict (seq) do nothing"
    );
    const MARK_FAILED: &str = concat!("update log set via = 'failed'", waiting!());
    const DETAIL: &str = "the receiver unregistered before it came for the message";
    let page = txn
        .tx
        .query_first(PAGE, &[subject, after, ABANDON_BATCH].map(SqlParam::Int))
        .await?;
    let (last_seq, count) = match page {
        Some(row) => (row.int(0)?, row.int(1)?),
        None => (after, 0),
    };
    let [receiver, after, through_seq, tail_start] =
        [subject, after, last_seq, tail_start].map(SqlParam::Int);
    let code = SqlParam::Text(chorus_wire::Code::AgentNotFound.as_str());
    txn.tx
        .execute(
            INSERT_FAILURES,
            &[
                receiver,
                after,
                through_seq,
                tail_start,
                code,
                SqlParam::Text(DETAIL),
            ],
        )
        .await?;
    let failed = txn
        .tx
        .execute(MARK_FAILED, &[receiver, after, through_seq, tail_start])
        .await? as i64;
    txn.counter_deltas
        .adjust_state_count(DeliveryState::Queued, -failed);
    txn.counter_deltas
        .adjust_state_count(DeliveryState::Failed, failed);
    Ok((count == ABANDON_BATCH).then_some(last_seq))
}

/// What was said of a message; the first word stands, also when its endpoint and its receiver's key both say one.
pub(crate) async fn insert_response(
    tx: &DbConnection<'_>,
    seq: i64,
    response: &str,
    at: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "insert into responses (seq, response, at) values ($1, $2, $3) on conflict (seq) do nothing";
    tx.execute(
        SQL,
        &[
            SqlParam::Int(seq),
            SqlParam::Text(response),
            SqlParam::Int(at.0),
        ],
    )
    .await
    .map(drop)
}

pub(crate) async fn insert_failure(
    tx: &DbConnection<'_>,
    seq: i64,
    code: &str,
    detail: &str,
) -> Result<(), DbError> {
    const SQL: &str = "insert into failures (seq, error_code, detail) values ($1, $2, $3) on conflict (seq) do nothing";
    tx.execute(
        SQL,
        &[
            SqlParam::Int(seq),
            SqlParam::Text(code),
            SqlParam::Text(detail),
        ],
    )
    .await
    .map(drop)
}

/// Messages from before `until` whose webhook has not answered.
pub(crate) async fn list_pending_webhooks(
    tx: &DbConnection<'_>,
    until: UnixMicros,
    limit: usize,
) -> Result<Vec<i64>, DbError> {
    const SQL: &str = "select seq from log where via = 'pending' and at < $2 order by seq limit $1";
    let rows = tx
        .query(SQL, &[SqlParam::Int(limit as i64), SqlParam::Int(until.0)])
        .await?;
    rows.iter().map(|row| row.int(0)).collect()
}
