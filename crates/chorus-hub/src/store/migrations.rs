//! Migrations: numbered, forward-only schema changes, run at start under a lock.

use super::{DbConnection, DbError, SqlParam, sql_dialect};

/// All migrations. A released one is never edited; a mistake in it is corrected by a new one.
const MIGRATIONS: &[(i64, &str)] = &[
    (1, include_str!("migrations/0001_foundation.sql")),
    (2, include_str!("migrations/0002_frames.sql")),
    (3, include_str!("migrations/0003_ledger.sql")),
    (4, include_str!("migrations/0004_skills.sql")),
    (5, include_str!("migrations/0005_channels.sql")),
    (6, include_str!("migrations/0006_deliveries.sql")),
    (7, include_str!("migrations/0007_host.sql")),
    (8, include_str!("migrations/0008_artifacts.sql")),
    (9, include_str!("migrations/0009_owned.sql")),
    (10, include_str!("migrations/0010_keys.sql")),
    (11, include_str!("migrations/0011_contact.sql")),
    (12, include_str!("migrations/0012_outbox_owner.sql")),
    (13, include_str!("migrations/0013_quotas.sql")),
    (14, include_str!("migrations/0014_shown.sql")),
    (15, include_str!("migrations/0015_market.sql")),
    (16, include_str!("migrations/0016_trimmed.sql")),
    (17, include_str!("migrations/0017_refusals.sql")),
    (18, include_str!("migrations/0018_request_answers.sql")),
    (19, include_str!("migrations/0019_hirer_days.sql")),
    (20, include_str!("migrations/0020_open_items.sql")),
    (21, include_str!("migrations/0021_console_sessions.sql")),
    (22, include_str!("migrations/0022_token_epoch.sql")),
];

/// Runs the missing migrations. The database of a newer hub is refused, because this hub would misread it.
pub(super) async fn run_migrations(tx: &DbConnection<'_>, now: i64) -> Result<(), DbError> {
    tx.execute_batch(sql_dialect::begin_migration_sql(tx))
        .await?;
    match apply_migrations(tx, now).await {
        Ok(()) => tx.execute_batch("commit").await,
        Err(error) => {
            // The error of the migration is the one to report; a broken connection has rolled back by itself.
            let _ = tx.execute_batch("rollback").await;
            Err(error)
        }
    }
}

async fn apply_migrations(tx: &DbConnection<'_>, now: i64) -> Result<(), DbError> {
    tx.execute_batch(
        "create table if not exists migrations (step bigint primary key, at bigint not null)",
    )
    .await?;
    let row = tx
        .query_first("select coalesce(max(step), 0) from migrations", &[])
        .await?;
    let done = row.map_or(Ok(0), |row| row.int(0))?;
    let newest = MIGRATIONS.last().map_or(0, |(step, _)| *step);
    if done > newest {
        return Err(DbError::Other(format!(
            "the database is of a newer hub (step {done}, this one knows {newest})"
        )));
    }
    if done < newest
        && let Some(sql) = sql_dialect::block_groups_sql(tx)
    {
        tx.execute_batch(sql).await?;
    }
    for (step, text) in MIGRATIONS.iter().filter(|(step, _)| *step > done) {
        tx.execute_batch(&sql_dialect::render_migration(tx, text))
            .await?;
        tx.execute(
            "insert into migrations (step, at) values ($1, $2)",
            &[SqlParam::Int(*step), SqlParam::Int(now)],
        )
        .await?;
    }
    Ok(())
}
