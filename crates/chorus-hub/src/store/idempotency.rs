//! Which send came with which `Idempotency-Key`: per caller, so that a stranger's key blocks nobody (failure 5).

use super::{DbConnection, DbError, SqlParam};
use crate::identity::IdempotencyKey;
use chorus_wire::{limits, time::UnixMicros};

/// What is known of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum KeyUse {
    /// Never used, or so long ago that it is free again.
    Unused,
    /// Used for the message at this place, with the same value.
    SameRequest(i64),
    /// Used with another value.
    DifferentRequest,
}

pub(crate) async fn check_idempotency_key(
    tx: &DbConnection<'_>,
    caller: &str,
    idempotency: &IdempotencyKey,
    now: UnixMicros,
) -> Result<KeyUse, DbError> {
    const SQL: &str = "select fingerprint, seq, at from idempotency where caller = $1 and key = $2";
    let Some(mut row) = tx
        .query_first(
            SQL,
            &[SqlParam::Text(caller), SqlParam::Text(&idempotency.key)],
        )
        .await?
    else {
        return Ok(KeyUse::Unused);
    };
    let (fingerprint, seq, at) = (
        row.maybe_bytes(0)?.unwrap_or_default(),
        row.int(1)?,
        UnixMicros(row.int(2)?),
    );
    Ok(if at.saturating_add(limits::IDEMPOTENCY_RETENTION) <= now {
        KeyUse::Unused
    } else if fingerprint == idempotency.fingerprint {
        KeyUse::SameRequest(seq)
    } else {
        KeyUse::DifferentRequest
    })
}

pub(crate) async fn record_idempotency_key(
    tx: &DbConnection<'_>,
    caller: &str,
    idempotency: &IdempotencyKey,
    seq: i64,
    now: UnixMicros,
) -> Result<(), DbError> {
    const SQL: &str = "insert into idempotency (caller, key, fingerprint, seq, at) values ($1, $2, $3, $4, $5)
                       on conflict (caller, key) do update set fingerprint = excluded.fingerprint, seq = excluded.seq, at = excluded.at";
    let params = [
        SqlParam::Text(caller),
        SqlParam::Text(&idempotency.key),
        SqlParam::Bytes(&idempotency.fingerprint),
        SqlParam::Int(seq),
        SqlParam::Int(now.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}
