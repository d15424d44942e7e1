//! Messages: entries of the log with a receiver, an outcome and perhaps a response.

use super::log::{self, Entry, Mark};
use super::{DbError, Param, Row, Tx, Txn};
use chorus_wire::{limits, time::Micros};

/// A message with everything that is known of it.
#[derive(Debug)]
pub(crate) struct Message {
    pub entry: Entry,
    pub response: Option<(String, Micros)>,
    pub failure: Option<(String, String)>,
}

/// The message at this place.
pub(crate) async fn get(tx: &Tx<'_>, seq: i64) -> Result<Option<Message>, DbError> {
    const SQL: &str = "
        select l.seq, l.subject, l.kind, l.actor, s.agent_id, l.at, l.body, l.via, l.delivered_at,
               r.agent_id, a.response, a.at, f.error_code, f.detail
        from log l join principals s on s.id = l.actor join principals r on r.id = l.subject
        left join responses a on a.seq = l.seq left join failures f on f.seq = l.seq
        where l.seq = $1 and l.kind = 'message'";
    let Some(mut row) = tx.one(SQL, &[Param::Int(seq)]).await? else {
        return Ok(None);
    };
    let mut rest = Row(row.0.split_off(10));
    let response = rest.maybe_text(0)?.zip(rest.maybe_int(1)?.map(Micros));
    let failure = rest.maybe_text(2)?.zip(rest.maybe_text(3)?);
    Ok(Some(Message {
        response,
        failure,
        entry: log::entry(row)?,
    }))
}

/// What this agent sent and received after `after` (TRN-56): see `log::heard` for how it is found.
pub(crate) async fn history(
    tx: &Tx<'_>,
    me: i64,
    after: i64,
    indexed: i64,
    limit: usize,
) -> Result<Vec<Entry>, DbError> {
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
    let tail = after.max(indexed);
    Ok(log::page(
        tx,
        SQL,
        &[
            Param::Int(me),
            Param::Int(after),
            Param::Int(limit as i64),
            Param::Int(tail),
        ],
        limit,
        limits::HISTORY_BYTES,
    )
    .await?
    .entries)
}

/// What `me` received after `after` and has not answered, oldest first. Only the newest are looked through.
pub(crate) async fn unanswered(
    tx: &Tx<'_>,
    me: i64,
    after: i64,
    indexed: i64,
    limit: usize,
) -> Result<log::Page, DbError> {
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
    let (limit_at, tail) = (Param::Int(limit as i64), Param::Int(after.max(indexed)));
    let params = [
        Param::Int(me),
        Param::Int(after),
        limit_at,
        Param::Int(limits::MESSAGES_LOOKED as i64),
        tail,
    ];
    log::page(tx, SQL, &params, limit, limits::HISTORY_BYTES).await
}

/// Messages of `me`, those with `peer` where one is named: the first after a place, or the latest; oldest first either way. Of
/// those with a peer, only so many of `me` are looked through.
pub(crate) async fn sought(
    tx: &Tx<'_>,
    me: i64,
    peer: Option<i64>,
    after: Option<i64>,
    indexed: i64,
    limit: usize,
) -> Result<log::Page, DbError> {
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
    let looked = if peer.is_some() {
        limits::MESSAGES_LOOKED
    } else {
        limit
    };
    let [me, with, most, looked] =
        [me, peer.unwrap_or(0), limit as i64, looked as i64].map(Param::Int);
    match after {
        Some(after) => {
            let params = [
                me,
                with,
                most,
                looked,
                Param::Int(after),
                Param::Int(after.max(indexed)),
            ];
            log::page(tx, FIRST, &params, limit, limits::HISTORY_BYTES).await
        }
        None => {
            let params = [me, with, most, looked, Param::Int(indexed)];
            let mut page = log::page(tx, LATEST, &params, limit, limits::HISTORY_BYTES).await?;
            page.entries.reverse();
            Ok(page)
        }
    }
}

/// Settles a message that has `from`; false when it no longer does. A webhook is a delivery, and has a time.
pub(crate) async fn settle(
    txn: &mut Txn<'_>,
    seq: i64,
    from: Mark,
    to: Mark,
) -> Result<bool, DbError> {
    const SQL: &str = "update log set via = $3, delivered_at = coalesce(delivered_at, $4) where seq = $1 and via = $2
                       returning case when delivered_at is null then 0 else 1 end";
    let at = matches!(to, Mark::Webhook).then_some(txn.now().0);
    let params = [
        Param::Int(seq),
        Param::Text(from.as_str()),
        Param::Text(to.as_str()),
        Param::int(at),
    ];
    let Some(row) = txn.tx.one(SQL, &params).await? else {
        return Ok(false);
    };
    // What its receiver has meanwhile read from the log does not wait, whatever it is called.
    if !(to == Mark::Queued && row.int(0)? == 1) {
        txn.counts.marked(from, -1);
        txn.counts.marked(to, 1);
    }
    Ok(true)
}

/// Messages that waited have now been read from a stream; how they first went on their way stays as it was.
pub(crate) async fn caught_up(txn: &mut Txn<'_>, seqs: &[i64]) -> Result<(), DbError> {
    const SQL: &str = "update log set delivered_at = $2
                       where seq = $1 and via in ('queued', 'sse') and delivered_at is null returning via";
    for seq in seqs {
        let row = txn
            .tx
            .one(SQL, &[Param::Int(*seq), Param::Int(txn.now().0)])
            .await?;
        if row.map(|mut row| row.text(0)).transpose()?.as_deref() == Some(Mark::Queued.as_str()) {
            txn.counts.marked(Mark::Queued, -1);
            txn.counts.marked(Mark::Sse, 1);
        }
    }
    Ok(())
}

/// Messages that are given up in one transaction: everybody else's writes wait meanwhile.
const GIVEN_UP: i64 = 500;

/// The receiver is gone, and nobody will come for what waited for it. Where that is much, the rest follows step by step.
pub(crate) async fn abandon(txn: &mut Txn<'_>, subject: i64) -> Result<(), DbError> {
    const LATER: &str =
        "insert into abandoned (subject, after) values ($1, $2) on conflict (subject) do nothing";
    let last_few = txn.indexed();
    if let Some(after) = give_up(txn, subject, 0, last_few).await? {
        txn.tx
            .execute(LATER, &[subject, after].map(Param::Int))
            .await?;
    }
    Ok(())
}

/// One step for a receiver that is gone; 0 when there is none.
pub(super) async fn abandon_more(txn: &mut Txn<'_>) -> Result<u64, DbError> {
    let row = txn
        .tx
        .one(
            "select subject, after from abandoned order by subject limit 1",
            &[],
        )
        .await?;
    let Some(row) = row else { return Ok(0) };
    let (subject, after) = (row.int(0)?, row.int(1)?);
    match give_up(txn, subject, after, i64::MAX).await? {
        Some(after) => {
            let params = [subject, after].map(Param::Int);
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
                    &[Param::Int(subject)],
                )
                .await
        }
    }
}

/// Gives up some of what waited for `subject` after a place, and what is behind the index from `tail` on; the place to go on
/// from, if there is more.
async fn give_up(
    txn: &mut Txn<'_>,
    subject: i64,
    after: i64,
    tail: i64,
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
    const WHY: &str = concat!(
        "insert into failures (seq, error_code, detail) select seq, cast($5 as text), cast($6 as text) from log",
        waiting!(),
        " on conflict (seq) do nothing"
    );
    const FAIL: &str = concat!("update log set via = 'failed'", waiting!());
    const DETAIL: &str = "the receiver unregistered before it came for the message";
    let page = txn
        .tx
        .one(PAGE, &[subject, after, GIVEN_UP].map(Param::Int))
        .await?;
    let (last, count) = match page {
        Some(row) => (row.int(0)?, row.int(1)?),
        None => (after, 0),
    };
    let [who, after, upto, tail] = [subject, after, last, tail].map(Param::Int);
    let code = Param::Text(chorus_wire::Code::AgentNotFound.as_str());
    txn.tx
        .execute(WHY, &[who, after, upto, tail, code, Param::Text(DETAIL)])
        .await?;
    let failed = txn.tx.execute(FAIL, &[who, after, upto, tail]).await? as i64;
    txn.counts.marked(Mark::Queued, -failed);
    txn.counts.marked(Mark::Failed, failed);
    Ok((count == GIVEN_UP).then_some(last))
}

/// What was said of a message; the first word stands, also when its endpoint and its receiver's key both say one.
pub(crate) async fn respond(
    tx: &Tx<'_>,
    seq: i64,
    response: &str,
    at: Micros,
) -> Result<(), DbError> {
    const SQL: &str = "insert into responses (seq, response, at) values ($1, $2, $3) on conflict (seq) do nothing";
    tx.execute(
        SQL,
        &[Param::Int(seq), Param::Text(response), Param::Int(at.0)],
    )
    .await
    .map(drop)
}

pub(crate) async fn fail(tx: &Tx<'_>, seq: i64, code: &str, detail: &str) -> Result<(), DbError> {
    const SQL: &str = "insert into failures (seq, error_code, detail) values ($1, $2, $3) on conflict (seq) do nothing";
    tx.execute(
        SQL,
        &[Param::Int(seq), Param::Text(code), Param::Text(detail)],
    )
    .await
    .map(drop)
}

/// Messages from before `until` whose webhook has not answered.
pub(crate) async fn pending(tx: &Tx<'_>, until: Micros, limit: usize) -> Result<Vec<i64>, DbError> {
    const SQL: &str = "select seq from log where via = 'pending' and at < $2 order by seq limit $1";
    let rows = tx
        .query(SQL, &[Param::Int(limit as i64), Param::Int(until.0)])
        .await?;
    rows.iter().map(|row| row.int(0)).collect()
}
