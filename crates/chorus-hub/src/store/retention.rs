//! Retention: deletes what is older than `--retain`, in steps so small that other writes hardly wait for them.

use super::{
    DbError, LogSeq, SqlParam, WriteTxn, channel_entries, channel_tokens, channels, compact_ledger,
    connection_strings, departed_agents, log, messages, open_items, owner_usage, participant_index,
    request_answers, trimmed_streams,
};
use chorus_wire::{limits, time::UnixMicros};
use std::time::Duration;

/// Max rows of one step and table.
const STEP_ROWS: i64 = 500;

/// How long the row of an unregistered agent is kept at least: its last entries are in the participant index by then.
const DEPARTED_KEPT: Duration = Duration::from_secs(24 * 3600);
/// Max unregistered agents of one step: each takes some statements.
const DEPARTED_STEP_ROWS: i64 = 64;

/// Runs one step; true when there may be more to trim.
pub(crate) async fn run_retention_step(
    txn: &mut WriteTxn<'_>,
    keep_since: Option<UnixMicros>,
) -> Result<bool, DbError> {
    let now = txn.now();
    // The reply to a repeated key is read from its message, so the key is deleted with the message.
    let keys_until = now
        .saturating_sub(limits::IDEMPOTENCY_RETENTION)
        .max(keep_since.unwrap_or_default());
    let delete_keys = "delete from idempotency where (caller, key) in (select caller, key from idempotency where at <= $1 order by at limit $2)";
    let mut trimmed = txn
        .tx
        .execute(
            delete_keys,
            &[SqlParam::Int(keys_until.0), SqlParam::Int(STEP_ROWS)],
        )
        .await?;
    // Not console sessions: their streams end with them.
    let delete_tokens = "delete from sessions where token_hash in (select token_hash from sessions where expires_at <= $1
         and (console_session is null or console_session <> token_hash) order by expires_at limit $2)";
    trimmed += txn
        .tx
        .execute(
            delete_tokens,
            &[SqlParam::Int(now.0), SqlParam::Int(STEP_ROWS)],
        )
        .await?;
    trimmed += request_answers::delete_expired_requests(&txn.tx, now, STEP_ROWS).await?;
    trimmed += open_items::delete_expired_items(&txn.tx, now, STEP_ROWS).await?;
    trimmed += connection_strings::trim_delivery_records(
        &txn.tx,
        now.saturating_sub(limits::DELIVERY_DEDUP_RETENTION),
        STEP_ROWS,
    )
    .await?;
    trimmed += messages::abandon_next_batch(txn).await?;
    trimmed += channel_tokens::delete_expired_channel_tokens(
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
    // After everything that may name an agent has been trimmed.
    if trimmed == 0 {
        let gone_before = now
            .saturating_sub(DEPARTED_KEPT)
            .min(keep_since.unwrap_or(now));
        trimmed +=
            departed_agents::trim_departed_agents(&txn.tx, gone_before, DEPARTED_STEP_ROWS).await?;
    }
    Ok(trimmed > 0)
}

/// Deletes the oldest entries from before `keep_since`. The newest entry stays, because the next sequence is counted from it.
async fn trim_log(txn: &mut WriteTxn<'_>, keep_since: UnixMicros) -> Result<u64, DbError> {
    // Sequences and times grow together, so the oldest entries have the lowest sequences.
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
                SqlParam::id(txn.indexed_seq()),
            ],
        )
        .await?;
    let Some(last_seq) = row
        .and_then(|row| row.maybe_int(0).transpose())
        .transpose()?
        .map(LogSeq)
    else {
        return Ok(0);
    };
    const COUNTS: &str =
        "select count(*), coalesce(sum(case when via = 'queued' and delivered_at is null then 1 else 0 end), 0)
                          from log where seq <= $1 and kind = 'message'";
    if let Some(row) = txn
        .tx
        .query_first(COUNTS, &[SqlParam::id(last_seq)])
        .await?
    {
        let mut columns = row.columns();
        txn.counter_deltas.stored -= columns.int()?;
        txn.counter_deltas.queued -= columns.int()?;
    }
    trimmed_streams::record_trimmed_entries(&txn.tx, last_seq).await?;
    participant_index::delete_index_rows(&txn.tx, last_seq).await?;
    owner_usage::uncount_trimmed_entries(&txn.tx, last_seq).await?;
    channel_entries::delete_tool_calls(&txn.tx, last_seq).await?;
    log::delete_shared_parts(&txn.tx, last_seq).await?;
    txn.tx
        .execute(
            "delete from responses where seq <= $1",
            &[SqlParam::id(last_seq)],
        )
        .await?;
    txn.tx
        .execute(
            "delete from failures where seq <= $1",
            &[SqlParam::id(last_seq)],
        )
        .await?;
    txn.tx
        .execute("delete from log where seq <= $1", &[SqlParam::id(last_seq)])
        .await
}
