//! The SQL that differs between SQLite and PostgreSQL.

use super::DbConnection;

/// Fills in the placeholders of a migration for this engine.
pub(super) fn render_migration(tx: &DbConnection<'_>, text: &str) -> String {
    let substitutions: [(&str, &str, &str); 3] = [
        // Only this spelling makes a SQLite column an alias of the rowid.
        ("{rowid}", "integer primary key", "bigint primary key"),
        ("{bytes}", "blob", "bytea"),
        // Stores the rows in the primary key's tree, without a second copy of the key.
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

/// Begins a write group. On PostgreSQL the advisory lock makes commit order equal `seq` order: without it a reader could see
/// sequence 6, move its cursor past it, and never see a 5 that commits later.
pub(super) fn begin_group_sql(tx: &DbConnection<'_>) -> &'static str {
    match tx {
        DbConnection::Sqlite(_) => "begin immediate",
        DbConnection::Postgres(_) => "begin; select pg_advisory_xact_lock(4842712)",
    }
}

/// Reads the database's clock in microseconds, which all hubs of a cluster follow. A SQLite database has one hub, which uses its
/// own clock.
pub(super) fn now_sql(tx: &DbConnection<'_>) -> Option<&'static str> {
    match tx {
        DbConnection::Sqlite(_) => None,
        DbConnection::Postgres(_) => {
            Some("select (extract(epoch from clock_timestamp()) * 1000000)::bigint")
        }
    }
}

/// An insert of many rows that only a fault of the hub can make fail, and whose failure rolls the whole group back.
///
/// SQLite copies every page that an `insert … select` changes, so that the statement could be undone alone. `or fail` says that
/// it need not be, which saves those copies.
pub(super) struct InsertSelect {
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

impl InsertSelect {
    pub fn sql(&self, tx: &DbConnection<'_>) -> &'static str {
        match tx {
            DbConnection::Sqlite(_) => self.sqlite,
            DbConnection::Postgres(_) => self.postgres,
        }
    }
}

/// Makes an [`InsertSelect`] of everything after `insert into`.
macro_rules! insert_select {
    ($rest:expr) => {
        $crate::store::sql_dialect::InsertSelect {
            sqlite: concat!("insert or fail into ", $rest),
            postgres: concat!("insert into ", $rest),
        }
    };
}
pub(super) use insert_select;

/// Begins the migrations. The lock serialises two hubs that start at the same time.
pub(super) fn begin_migration_sql(tx: &DbConnection<'_>) -> &'static str {
    match tx {
        DbConnection::Sqlite(_) => "begin exclusive",
        // A migration of a large table, and the wait for another hub's migration, may exceed the statement timeout, which is
        // meant for requests.
        DbConnection::Postgres(_) => {
            "begin; set local statement_timeout = 0; select pg_advisory_xact_lock(4842713)"
        }
    }
}

/// Blocks the write groups of running hubs while tables change: both lock tables in different orders and would deadlock.
pub(super) fn block_groups_sql(tx: &DbConnection<'_>) -> Option<&'static str> {
    match tx {
        DbConnection::Sqlite(_) => None,
        DbConnection::Postgres(_) => Some("select pg_advisory_xact_lock(4842712)"),
    }
}
