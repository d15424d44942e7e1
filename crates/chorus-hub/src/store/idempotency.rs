//! Which message was sent with which `Idempotency-Key`. Keys are per caller, so that no caller blocks another's (failure 5).

use super::{DbConnection, DbError, LogSeq, SqlParam};
use crate::clock_watch::ExpiryClock;
use chorus_wire::{limits, time::UnixMicros};

/// An `Idempotency-Key` with the body it came with.
#[derive(Clone, Debug)]
pub struct IdempotencyKey {
    pub key: String,
    /// SHA-256 of the body in its canonical form.
    pub fingerprint: [u8; 32],
}

/// What a key was used for before.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum KeyUse {
    /// Never used, or the retention of its use has ended.
    Unused,
    /// Used with the same request, for the message at this sequence.
    SameRequest(LogSeq),
    /// Used with another request.
    DifferentRequest,
}

pub(crate) async fn check_idempotency_key(
    tx: &DbConnection<'_>,
    caller: &str,
    idempotency: &IdempotencyKey,
    clock: ExpiryClock,
) -> Result<KeyUse, DbError> {
    const SQL: &str = "select fingerprint, seq, at from idempotency where caller = $1 and key = $2";
    let Some(row) = tx
        .query_first(
            SQL,
            &[SqlParam::Text(caller), SqlParam::Text(&idempotency.key)],
        )
        .await?
    else {
        return Ok(KeyUse::Unused);
    };
    let mut columns = row.columns();
    let fingerprint = columns.maybe_bytes()?.unwrap_or_default();
    let seq = columns.id()?;
    let at = UnixMicros(columns.int()?);
    Ok(
        if clock.is_over(at, at.saturating_add(limits::IDEMPOTENCY_RETENTION)) {
            KeyUse::Unused
        } else if fingerprint == idempotency.fingerprint {
            KeyUse::SameRequest(seq)
        } else {
            KeyUse::DifferentRequest
        },
    )
}

pub(crate) async fn record_idempotency_key(
    tx: &DbConnection<'_>,
    caller: &str,
    idempotency: &IdempotencyKey,
    seq: LogSeq,
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "insert into idempotency (caller, key, fingerprint, seq, at) values ($1, $2, $3, $4, $5)
                       on conflict (caller, key) do update set fingerprint = excluded.fingerprint, seq = excluded.seq, at = excluded.at";
    let params = [
        SqlParam::Text(caller),
        SqlParam::Text(&idempotency.key),
        SqlParam::Bytes(&idempotency.fingerprint),
        SqlParam::id(seq),
        SqlParam::Int(now.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}
