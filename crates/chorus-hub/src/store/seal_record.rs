//! Which sealing key the secrets in this database were sealed with.

use super::{DbConnection, DbError, counters};
use crate::seal::SealedData;

/// The value of an operator's `chorus admin forget-seal-key`: the next key is accepted.
const FORGOTTEN: i64 = 0;

pub(crate) async fn read_sealed_data(tx: &DbConnection<'_>) -> Result<SealedData, DbError> {
    match counters::read_setting(tx, counters::SEAL_KEY).await? {
        Some(FORGOTTEN) => Ok(SealedData::Nothing),
        Some(fingerprint) => Ok(SealedData::WithKey(fingerprint.cast_unsigned())),
        None => {
            let sealed_row = tx
                .query_first(
                    "select 1 from channel_members where connection is not null and left_at is null limit 1",
                    &[],
                )
                .await?;
            Ok(match sealed_row {
                Some(_) => SealedData::WithUnknownKey,
                None => SealedData::Nothing,
            })
        }
    }
}

pub(crate) async fn record_seal_key(
    tx: &DbConnection<'_>,
    fingerprint: u64,
) -> Result<(), DbError> {
    counters::write_setting(tx, counters::SEAL_KEY, fingerprint.cast_signed()).await
}

pub(crate) async fn forget_seal_key(tx: &DbConnection<'_>) -> Result<(), DbError> {
    counters::write_setting(tx, counters::SEAL_KEY, FORGOTTEN).await
}
