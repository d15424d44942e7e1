//! Trimming what is too old, in steps so small that nobody waits for them.

use super::{
    DbError, SqlParam, WriteTxn, channel_deliveries, channels, compact_ledger, connection_strings,
    messages, participant_index,
};
use chorus_wire::{limits, time::UnixMicros};

/// Rows of one step.
const STEP_ROWS: i64 = 500;

/// One step; true when there may be more to trim.
pub(crate) async fn run_retention_step(
    txn: &mut WriteTxn<'_>,
    keep_since: Option<UnixMicros>,
) -> Result<bool, DbError> {
    let now = txn.now();
    // A key answers with what became of its message, so it goes when the message does.
    let keys_until = now
        .saturating_sub(limits::IDEMPOTENCY_RETENTION)
        .max(keep_since.unwrap_or_default());
    let keys = "delete from idempotency where (caller, key) in (select caller, key from idempotency where at <= $1 order by at limit $2)";
    let mut trimmed = txn
        .tx
        .execute(
            keys,
            &[SqlParam::Int(keys_until.0), SqlParam::Int(STEP_ROWS)],
        )
        .await?;
    let tokens = "delete from sessions where token_hash in (select token_hash from sessions where expires_at <= $1 order by expires_at limit $2)";
    trimmed += txn
        .tx
        .execute(tokens, &[SqlParam::Int(now.0), SqlParam::Int(STEP_ROWS)])
        .await?;
    trimmed += connection_strings::trim_delivery_records(
        &txn.tx,
        now.saturating_sub(limits::DELIVERY_DEDUP_RETENTION),
        STEP_ROWS,
    )
    .await?;
    trimmed += messages::abandon_next_batch(txn).await?;
    trimmed += channel_deliveries::delete_expired_channel_tokens(
        &txn.tx,
        now.saturating_sub(limits::EXPIRED_CALLBACK_RETENTION),
        STEP_ROWS,
    )
    .await?;
    if let Some(keep_since) = keep_since {
        trimmed += trim_log(txn, keep_since).await?
            + compact_ledger::run_compaction_step(txn, keep_since).await?;
        trimmed += channels::trim_deleted_channels(&txn.tx, keep_since, STEP_ROWS).await?;
    }
    Ok(trimmed > 0)
}

/// The oldest entries from before `keep`. The newest of all stays: the next place is counted from it.
async fn trim_log(txn: &mut WriteTxn<'_>, keep_since: UnixMicros) -> Result<u64, DbError> {
    // Places and times grow together, so the oldest rows are the first ones.
    const LAST_OLD_ENTRY: &str = "
        select max(seq) from (select seq from (select seq, at from log order by seq limit $2) o
                              where at < $1 and seq < (select max(seq) from log) and seq <= $3) t";
    let row = txn
        .tx
        .query_first(
            LAST_OLD_ENTRY,
            &[
                SqlParam::Int(keep_since.0),
                SqlParam::Int(STEP_ROWS),
                SqlParam::Int(txn.indexed_seq()),
            ],
        )
        .await?;
    let Some(last_seq) = row
        .and_then(|row| row.maybe_int(0).transpose())
        .transpose()?
    else {
        return Ok(0);
    };
    const COUNTS: &str =
        "select count(*), coalesce(sum(case when via = 'queued' and delivered_at is null then 1 else 0 end), 0)
                          from log where seq <= $1 and kind = 'message'";
    if let Some(row) = txn
        .tx
        .query_first(COUNTS, &[SqlParam::Int(last_seq)])
        .await?
    {
        txn.counter_deltas.stored -= row.int(0)?;
        txn.counter_deltas.queued -= row.int(1)?;
    }
    participant_index::delete_index_rows(&txn.tx, last_seq).await?;
    channels::delete_tool_calls(&txn.tx, last_seq).await?;
    txn.tx
        .execute(
            "delete from responses where seq <= $1",
            &[SqlParam::Int(last_seq)],
        )
        .await?;
    txn.tx
        .execute(
            "delete from failures where seq <= $1",
            &[SqlParam::Int(last_seq)],
        )
        .await?;
    txn.tx
        .execute(
            "delete from log where seq <= $1",
            &[SqlParam::Int(last_seq)],
        )
        .await
}
