//! The few places where the two engines need different words.

use super::DbConnection;

/// A migration's text in the words of this engine.
pub(super) fn render_migration(tx: &DbConnection<'_>, text: &str) -> String {
    let substitutions: [(&str, &str, &str); 3] = [
        // Only this spelling makes a SQLite column the row's own key.
        ("{rowid}", "integer primary key", "bigint primary key"),
        ("{bytes}", "blob", "bytea"),
        // The rows are the key: no second copy of it.
        ("{clustered}", "without rowid", ""),
    ];
    substitutions
        .iter()
        .fold(text.to_owned(), |text, (placeholder, sqlite, postgres)| {
            text.replace(
                placeholder,
                match tx {
                    DbConnection::Sqlite(_) => sqlite,
                    DbConnection::Postgres(_) => postgres,
                },
            )
        })
}

/// Starts a group. On PostgreSQL the lock makes the order of commits the order of `seq`: without it a reader could see 6,
/// move its cursor past it, and never see a 5 that commits later.
pub(super) fn begin_group_sql(tx: &DbConnection<'_>) -> &'static str {
    match tx {
        DbConnection::Sqlite(_) => "begin immediate",
        DbConnection::Postgres(_) => "begin; select pg_advisory_xact_lock(4842712)",
    }
}

/// The time that hubs with one database have in common, in microseconds; a file has one hub, and its own clock will do.
pub(super) fn now_sql(tx: &DbConnection<'_>) -> Option<&'static str> {
    match tx {
        DbConnection::Sqlite(_) => None,
        DbConnection::Postgres(_) => {
            Some("select (extract(epoch from clock_timestamp()) * 1000000)::bigint")
        }
    }
}

/// Migrations of two hubs that start at once must not meet.
pub(super) fn begin_migration_sql(tx: &DbConnection<'_>) -> &'static str {
    match tx {
        DbConnection::Sqlite(_) => "begin exclusive",
        // However long a step takes on a large table, and however long the other one waits for it: the bound of a statement
        // is for requests.
        DbConnection::Postgres(_) => {
            "begin; set local statement_timeout = 0; select pg_advisory_xact_lock(4842713)"
        }
    }
}

/// Keeps the groups of running hubs out while tables change: locks taken table by table in two orders would meet.
pub(super) fn block_groups_sql(tx: &DbConnection<'_>) -> Option<&'static str> {
    match tx {
        DbConnection::Sqlite(_) => None,
        DbConnection::Postgres(_) => Some("select pg_advisory_xact_lock(4842712)"),
    }
}
