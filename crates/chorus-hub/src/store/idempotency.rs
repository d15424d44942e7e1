//! Which send came with which `Idempotency-Key`: per caller, so that a stranger's key blocks nobody (failure 5).

use super::{DbError, Param, Tx};
use crate::identity::Idempotency;
use chorus_wire::{limits, time::Micros};

/// What is known of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Never used, or so long ago that it is free again.
    New,
    /// Used for the message at this place, with the same value.
    Same(i64),
    /// Used with another value.
    Other,
}

pub(crate) async fn look(
    tx: &Tx<'_>,
    caller: &str,
    once: &Idempotency,
    now: Micros,
) -> Result<Seen, DbError> {
    const SQL: &str = "select fingerprint, seq, at from idempotency where caller = $1 and key = $2";
    let Some(mut row) = tx
        .one(SQL, &[Param::Text(caller), Param::Text(&once.key)])
        .await?
    else {
        return Ok(Seen::New);
    };
    let (fingerprint, seq, at) = (
        row.maybe_bytes(0)?.unwrap_or_default(),
        row.int(1)?,
        Micros(row.int(2)?),
    );
    Ok(if at.plus(limits::IDEMPOTENCY_KEPT) <= now {
        Seen::New
    } else if fingerprint == once.fingerprint {
        Seen::Same(seq)
    } else {
        Seen::Other
    })
}

pub(crate) async fn keep(
    tx: &Tx<'_>,
    caller: &str,
    once: &Idempotency,
    seq: i64,
    now: Micros,
) -> Result<(), DbError> {
    const SQL: &str = "insert into idempotency (caller, key, fingerprint, seq, at) values ($1, $2, $3, $4, $5)
                       on conflict (caller, key) do update set fingerprint = excluded.fingerprint, seq = excluded.seq, at = excluded.at";
    let params = [
        Param::Text(caller),
        Param::Text(&once.key),
        Param::Bytes(&once.fingerprint),
        Param::Int(seq),
        Param::Int(now.0),
    ];
    tx.execute(SQL, &params).await.map(drop)
}
