//! Sums kept beside the log, so that `/health` never counts a million rows; and the small settings of a database.

use super::log::DeliveryState;
use super::{DbConnection, DbError, SqlParam};

/// What a group adds to the sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CounterDeltas {
    pub stored: i64,
    pub delivered: i64,
    /// How many wait now.
    pub queued: i64,
    pub failed: i64,
    pub agents: i64,
    pub market: super::market_totals::MarketTotals,
}

impl CounterDeltas {
    /// A message was stored with this mark.
    pub fn count_message(&mut self, state: DeliveryState) {
        self.stored += 1;
        self.adjust_state_count(state, 1);
    }

    /// `by` messages got (or lost) this mark.
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
        let sums = [
            self.stored,
            self.delivered,
            self.queued,
            self.failed,
            self.agents,
        ];
        if sums == [0; 5] {
            return Ok(());
        }
        tx.execute(SQL, &sums.map(SqlParam::Int)).await.map(drop)
    }
}

/// The sums as they stand: `Deltas` from nothing.
pub(crate) async fn read_counters(tx: &DbConnection<'_>) -> Result<CounterDeltas, DbError> {
    let row = tx
        .query_first(
            "select stored, delivered, queued, failed, agents from counters where id = 1",
            &[],
        )
        .await?;
    let row = row.ok_or_else(|| DbError::Other("the counters are gone".into()))?;
    let int = |column| row.int(column);
    let (stored, delivered, queued) = (int(0)?, int(1)?, int(2)?);
    Ok(CounterDeltas {
        stored,
        delivered,
        queued,
        failed: int(3)?,
        agents: int(4)?,
        ..CounterDeltas::default()
    })
}

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

/// This database's share of its trace ids; chosen once.
pub(super) async fn load_trace_salt(tx: &DbConnection<'_>) -> Result<u32, DbError> {
    const SQL: &str =
        "insert into settings (name, value) values ('salt', $1) on conflict (name) do nothing";
    let new_salt = i64::from(rand::random::<u32>() & super::log::SALT_MASK);
    tx.execute(SQL, &[SqlParam::Int(new_salt)]).await?;
    Ok(read_setting(tx, "salt").await?.unwrap_or(new_salt) as u32)
}
