//! Message and agent counters, so that `/health` never counts a million rows; and the integer settings of a database.

use super::log::DeliveryState;
use super::{ColumnReader, DbConnection, DbError, FromRow, SqlParam};

/// What a write group adds to the counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CounterDeltas {
    pub stored: i64,
    pub delivered: i64,
    /// Messages that are queued now.
    pub queued: i64,
    pub failed: i64,
    pub agents: i64,
    pub market: super::market_totals::MarketTotals,
}

impl CounterDeltas {
    /// Counts a message that was stored with this delivery state.
    pub fn count_message(&mut self, state: DeliveryState) {
        self.stored += 1;
        self.adjust_state_count(state, 1);
    }

    /// Counts messages that got this delivery state, or lost it if `change` is negative.
    pub fn adjust_state_count(&mut self, state: DeliveryState, change: i64) {
        match state {
            DeliveryState::Sse | DeliveryState::Webhook => self.delivered += change,
            DeliveryState::Queued => self.queued += change,
            DeliveryState::Failed => self.failed += change,
            DeliveryState::Pending => {}
        }
    }

    pub(super) async fn store_deltas(&self, tx: &DbConnection<'_>) -> Result<(), DbError> {
        const SQL: &str = "update counters set stored = stored + $1, delivered = delivered + $2, queued = queued + $3,
                           failed = failed + $4, agents = agents + $5 where id = 1";
        self.market.store_deltas(tx).await?;
        let deltas = [
            self.stored,
            self.delivered,
            self.queued,
            self.failed,
            self.agents,
        ];
        if deltas == [0; 5] {
            return Ok(());
        }
        tx.execute(SQL, &deltas.map(SqlParam::Int)).await.map(drop)
    }
}

const SELECT_COUNTERS: &str =
    "select stored, delivered, queued, failed, agents from counters where id = 1";

/// Reads the columns of [`SELECT_COUNTERS`].
impl FromRow for CounterDeltas {
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError> {
        Ok(CounterDeltas {
            stored: columns.int()?,
            delivered: columns.int()?,
            queued: columns.int()?,
            failed: columns.int()?,
            agents: columns.int()?,
            ..CounterDeltas::default()
        })
    }
}

/// The current counters, as deltas from zero. The market totals are not read.
pub(crate) async fn read_counters(tx: &DbConnection<'_>) -> Result<CounterDeltas, DbError> {
    let row = tx.query_first(SELECT_COUNTERS, &[]).await?;
    let row = row.ok_or_else(|| DbError::Other("the counters are gone".into()))?;
    CounterDeltas::from_row(row)
}

/// Names of settings that other modules read or write.
pub(crate) const READY_AT: &str = "ready_at";
pub(crate) const SEAL_KEY: &str = "seal_key";
pub(crate) const BACKUP_COPY: &str = "backup_copy";
pub(crate) const LAST_PASS_AT: &str = "last_pass_at";

pub(crate) async fn read_setting(
    tx: &DbConnection<'_>,
    name: &str,
) -> Result<Option<i64>, DbError> {
    let row = tx
        .query_first(
            "select value from settings where name = $1",
            &[SqlParam::Text(name)],
        )
        .await?;
    row.map(|row| row.int(0)).transpose()
}

pub(crate) async fn write_setting(
    tx: &DbConnection<'_>,
    name: &str,
    value: i64,
) -> Result<(), DbError> {
    const SQL: &str = "insert into settings (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value";
    tx.execute(SQL, &[SqlParam::Text(name), SqlParam::Int(value)])
        .await
        .map(drop)
}

/// The salt in this database's trace ids; chosen when the database is created.
pub(super) async fn load_trace_salt(tx: &DbConnection<'_>) -> Result<u32, DbError> {
    const SQL: &str =
        "insert into settings (name, value) values ('salt', $1) on conflict (name) do nothing";
    let new_salt = i64::from(crate::random::random_value::<u32>() & super::log::SALT_MASK);
    tx.execute(SQL, &[SqlParam::Int(new_salt)]).await?;
    Ok(read_setting(tx, "salt").await?.unwrap_or(new_salt) as u32)
}
