//! Messages: entries of the log with a receiver, an outcome and perhaps a response.

use super::log::{self, Entry, Mark};
use super::{DbError, Param, Row, Tx, Txn};
use chorus_wire::time::Micros;

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
    Ok(Some(Message { response, failure, entry: log::entry(row)? }))
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
    let rows = tx.query(SQL, &[Param::Int(me), Param::Int(after), Param::Int(limit as i64), Param::Int(tail)]).await?;
    rows.into_iter().map(log::entry).collect()
}

/// Settles a message that has `from`; false when it no longer does. `Sse` and `Webhook` are deliveries, and have a time.
pub(crate) async fn settle(txn: &mut Txn<'_>, seq: i64, from: Mark, to: Mark) -> Result<bool, DbError> {
    const SQL: &str = "update log set via = $3, delivered_at = $4 where seq = $1 and via = $2";
    let at = matches!(to, Mark::Webhook).then_some(txn.now().0);
    let params = [Param::Int(seq), Param::Text(from.as_str()), Param::Text(to.as_str()), Param::int(at)];
    let changed = txn.tx.execute(SQL, &params).await? == 1;
    if changed {
        txn.counts.marked(from, -1);
        txn.counts.marked(to, 1);
    }
    Ok(changed)
}

/// Messages that waited have now been read from a stream; how they first went on their way stays as it was.
pub(crate) async fn caught_up(txn: &mut Txn<'_>, seqs: &[i64]) -> Result<(), DbError> {
    const SQL: &str = "update log set delivered_at = $2 where seq = $1 and via = 'queued' and delivered_at is null";
    for seq in seqs {
        let changed = txn.tx.execute(SQL, &[Param::Int(*seq), Param::Int(txn.now().0)]).await? as i64;
        txn.counts.queued -= changed;
        txn.counts.delivered += changed;
    }
    Ok(())
}

/// How many messages still wait for this agent.
pub(crate) async fn waiting(txn: &Txn<'_>, subject: i64) -> Result<i64, DbError> {
    const SQL: &str = "
        select count(*) from log where via = 'queued' and delivered_at is null and kind = 'message' and seq in (
            select seq from parts where who = $1 and class = 0
            union all
            select seq from log where seq > $2 and subject = $1)";
    let row = txn.tx.one(SQL, &[Param::Int(subject), Param::Int(txn.indexed())]).await?;
    row.map_or(Ok(0), |row| row.int(0))
}

pub(crate) async fn respond(tx: &Tx<'_>, seq: i64, response: &str, at: Micros) -> Result<(), DbError> {
    const SQL: &str = "insert into responses (seq, response, at) values ($1, $2, $3)";
    tx.execute(SQL, &[Param::Int(seq), Param::Text(response), Param::Int(at.0)]).await.map(drop)
}

pub(crate) async fn fail(tx: &Tx<'_>, seq: i64, code: &str, detail: &str) -> Result<(), DbError> {
    const SQL: &str = "insert into failures (seq, error_code, detail) values ($1, $2, $3) on conflict (seq) do nothing";
    tx.execute(SQL, &[Param::Int(seq), Param::Text(code), Param::Text(detail)]).await.map(drop)
}

/// Messages whose webhook had not answered when the hub stopped. A hub is alone on its database, so nobody else waits for them.
pub(crate) async fn pending(tx: &Tx<'_>, limit: usize) -> Result<Vec<i64>, DbError> {
    let rows = tx
        .query("select seq from log where via = 'pending' order by seq limit $1", &[Param::Int(limit as i64)])
        .await?;
    rows.iter().map(|row| row.int(0)).collect()
}
