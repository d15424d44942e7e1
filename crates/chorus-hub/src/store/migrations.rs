//! Numbered steps, forward only, run at start under a lock.

use super::{DbError, Param, Tx, dialect};

/// Every step there ever was. A step that has been released is never edited: the next one mends it.
const STEPS: &[(i64, &str)] = &[
    (1, include_str!("migrations/0001_foundation.sql")),
    (2, include_str!("migrations/0002_frames.sql")),
    (3, include_str!("migrations/0003_ledger.sql")),
    (4, include_str!("migrations/0004_skills.sql")),
    (5, include_str!("migrations/0005_channels.sql")),
    (6, include_str!("migrations/0006_deliveries.sql")),
    (7, include_str!("migrations/0007_host.sql")),
    (8, include_str!("migrations/0008_artifacts.sql")),
    (9, include_str!("migrations/0009_owned.sql")),
];

/// Brings the database to the newest step. A database from a newer hub is refused: it would be misread.
pub(super) async fn run(tx: &Tx<'_>, now: i64) -> Result<(), DbError> {
    tx.batch(dialect::begin_migration(tx)).await?;
    match steps(tx, now).await {
        Ok(()) => tx.batch("commit").await,
        Err(error) => {
            // The first error is the one to report; a broken connection has rolled back by itself.
            let _ = tx.batch("rollback").await;
            Err(error)
        }
    }
}

async fn steps(tx: &Tx<'_>, now: i64) -> Result<(), DbError> {
    tx.batch("create table if not exists migrations (step bigint primary key, at bigint not null)")
        .await?;
    let row = tx
        .one("select coalesce(max(step), 0) from migrations", &[])
        .await?;
    let done = row.map_or(Ok(0), |row| row.int(0))?;
    let newest = STEPS.last().map_or(0, |(step, _)| *step);
    if done > newest {
        return Err(DbError::Other(format!(
            "the database is of a newer hub (step {done}, this one knows {newest})"
        )));
    }
    if done < newest
        && let Some(sql) = dialect::alone(tx)
    {
        tx.batch(sql).await?;
    }
    for (step, text) in STEPS.iter().filter(|(step, _)| *step > done) {
        tx.batch(&dialect::migration(tx, text)).await?;
        tx.execute(
            "insert into migrations (step, at) values ($1, $2)",
            &[Param::Int(*step), Param::Int(now)],
        )
        .await?;
    }
    Ok(())
}
