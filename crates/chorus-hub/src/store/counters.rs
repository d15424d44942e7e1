//! Sums kept beside the log, so that `/health` never counts a million rows; and the small settings of a database.

use super::log::Mark;
use super::{DbError, Param, Tx};

/// What a group adds to the sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Deltas {
    pub stored: i64,
    pub delivered: i64,
    /// How many wait now.
    pub queued: i64,
    pub failed: i64,
    pub agents: i64,
    pub market: super::market::Sums,
}

impl Deltas {
    /// A message was stored with this mark.
    pub fn message(&mut self, mark: Mark) {
        self.stored += 1;
        self.marked(mark, 1);
    }

    /// `by` messages got (or lost) this mark.
    pub fn marked(&mut self, mark: Mark, by: i64) {
        match mark {
            Mark::Sse | Mark::Webhook => self.delivered += by,
            Mark::Queued => self.queued += by,
            Mark::Failed => self.failed += by,
            Mark::Pending => {}
        }
    }

    pub(super) async fn store(&self, tx: &Tx<'_>) -> Result<(), DbError> {
        const SQL: &str = "update counters set stored = stored + $1, delivered = delivered + $2, queued = queued + $3,
                           failed = failed + $4, agents = agents + $5 where id = 1";
        self.market.store(tx).await?;
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
        tx.execute(SQL, &sums.map(Param::Int)).await.map(drop)
    }
}

/// The sums as they stand: `Deltas` from nothing.
pub(crate) async fn read(tx: &Tx<'_>) -> Result<Deltas, DbError> {
    let row = tx
        .one(
            "select stored, delivered, queued, failed, agents from counters where id = 1",
            &[],
        )
        .await?;
    let row = row.ok_or_else(|| DbError::Other("the counters are gone".into()))?;
    let int = |column| row.int(column);
    let (stored, delivered, queued) = (int(0)?, int(1)?, int(2)?);
    Ok(Deltas {
        stored,
        delivered,
        queued,
        failed: int(3)?,
        agents: int(4)?,
        ..Deltas::default()
    })
}

pub(crate) async fn setting(tx: &Tx<'_>, name: &str) -> Result<Option<i64>, DbError> {
    let row = tx
        .one(
            "select value from settings where name = $1",
            &[Param::Text(name)],
        )
        .await?;
    row.map(|row| row.int(0)).transpose()
}

pub(crate) async fn set(tx: &Tx<'_>, name: &str, value: i64) -> Result<(), DbError> {
    const SQL: &str = "insert into settings (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value";
    tx.execute(SQL, &[Param::Text(name), Param::Int(value)])
        .await
        .map(drop)
}

/// This database's share of its trace ids; chosen once.
pub(super) async fn salt(tx: &Tx<'_>) -> Result<u32, DbError> {
    const SQL: &str =
        "insert into settings (name, value) values ('salt', $1) on conflict (name) do nothing";
    let fresh = i64::from(rand::random::<u32>() & super::log::SALT_MASK);
    tx.execute(SQL, &[Param::Int(fresh)]).await?;
    Ok(setting(tx, "salt").await?.unwrap_or(fresh) as u32)
}
