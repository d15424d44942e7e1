//! Trimming what is too old, in steps so small that nobody waits for them.

use super::{DbError, Param, Txn, channels, connections, deliveries, fold, messages, parts};
use chorus_wire::{limits, time::Micros};

/// Rows of one step.
const STEP: i64 = 500;

/// One step; true when there may be more to trim.
pub(crate) async fn step(txn: &mut Txn<'_>, keep: Option<Micros>) -> Result<bool, DbError> {
    let now = txn.now();
    // A key answers with what became of its message, so it goes when the message does.
    let keys_until = now
        .minus(limits::IDEMPOTENCY_KEPT)
        .max(keep.unwrap_or_default());
    let keys = "delete from idempotency where (caller, key) in (select caller, key from idempotency where at <= $1 order by at limit $2)";
    let mut trimmed = txn
        .tx
        .execute(keys, &[Param::Int(keys_until.0), Param::Int(STEP)])
        .await?;
    let tokens = "delete from sessions where token_hash in (select token_hash from sessions where expires_at <= $1 order by expires_at limit $2)";
    trimmed += txn
        .tx
        .execute(tokens, &[Param::Int(now.0), Param::Int(STEP)])
        .await?;
    trimmed += connections::trim(&txn.tx, now.minus(limits::PAIRS_KEPT), STEP).await?;
    trimmed += messages::abandon_more(txn).await?;
    trimmed += deliveries::trim(&txn.tx, now.minus(limits::CALLBACKS_REMEMBERED), STEP).await?;
    if let Some(keep) = keep {
        trimmed += log(txn, keep).await? + fold::step(txn, keep).await?;
        trimmed += channels::trim(&txn.tx, keep, STEP).await?;
    }
    Ok(trimmed > 0)
}

/// The oldest entries from before `keep`. The newest of all stays: the next place is counted from it.
async fn log(txn: &mut Txn<'_>, keep: Micros) -> Result<u64, DbError> {
    // Places and times grow together, so the oldest rows are the first ones.
    const LAST: &str = "
        select max(seq) from (select seq from (select seq, at from log order by seq limit $2) o
                              where at < $1 and seq < (select max(seq) from log) and seq <= $3) t";
    let row = txn
        .tx
        .one(
            LAST,
            &[
                Param::Int(keep.0),
                Param::Int(STEP),
                Param::Int(txn.indexed()),
            ],
        )
        .await?;
    let Some(last) = row
        .and_then(|row| row.maybe_int(0).transpose())
        .transpose()?
    else {
        return Ok(0);
    };
    const COUNTS: &str =
        "select count(*), coalesce(sum(case when via = 'queued' and delivered_at is null then 1 else 0 end), 0)
                          from log where seq <= $1 and kind = 'message'";
    if let Some(row) = txn.tx.one(COUNTS, &[Param::Int(last)]).await? {
        txn.counts.stored -= row.int(0)?;
        txn.counts.queued -= row.int(1)?;
    }
    parts::forget(&txn.tx, last).await?;
    channels::forget_calls(&txn.tx, last).await?;
    txn.tx
        .execute("delete from responses where seq <= $1", &[Param::Int(last)])
        .await?;
    txn.tx
        .execute("delete from failures where seq <= $1", &[Param::Int(last)])
        .await?;
    txn.tx
        .execute("delete from log where seq <= $1", &[Param::Int(last)])
        .await
}
