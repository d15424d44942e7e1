//! A database connection of either engine. Both run the same SQL text with `$n` placeholders.

use super::sql_value::{DbError, SqlParam, SqlRow};
use super::transaction_fault::TransactionFault;
use super::{postgres, sqlite};
use futures_util::FutureExt;
use futures_util::future::{Either, LocalBoxFuture, Ready, ready};

/// The result of a statement. On SQLite it is there when the call returns; on PostgreSQL it is waited for, on the heap: every
/// function that runs statements would otherwise contain the driver's futures, once for each of its statements.
pub(crate) type StatementResult<'c, T> =
    Either<Ready<Result<T, DbError>>, LocalBoxFuture<'c, Result<T, DbError>>>;

/// The result of a statement that SQLite has run.
fn completed<'c, T>(result: Result<T, DbError>) -> StatementResult<'c, T> {
    Either::Left(ready(result))
}

/// The result of a statement that PostgreSQL is going to run.
fn pending<'c, T>(
    running: impl Future<Output = Result<T, DbError>> + 'c,
) -> StatementResult<'c, T> {
    Either::Right(running.boxed_local())
}

/// The writer's connection inside a transaction, or a reader's connection.
pub(crate) enum DbConnection<'c> {
    Sqlite(&'c rusqlite::Connection),
    Postgres(&'c postgres::PostgresClient),
}

impl DbConnection<'_> {
    /// Runs a statement. Returns how many rows changed.
    pub fn execute<'a>(
        &'a self,
        sql: &'static str,
        params: &'a [SqlParam<'a>],
    ) -> StatementResult<'a, u64> {
        match self {
            DbConnection::Sqlite(connection) => completed(sqlite::execute(connection, sql, params)),
            DbConnection::Postgres(client) => pending(client.execute(sql, params)),
        }
    }

    pub fn query<'a>(
        &'a self,
        sql: &'static str,
        params: &'a [SqlParam<'a>],
    ) -> StatementResult<'a, Vec<SqlRow>> {
        match self {
            DbConnection::Sqlite(connection) => completed(sqlite::query(connection, sql, params)),
            DbConnection::Postgres(client) => pending(client.query(sql, params)),
        }
    }

    /// Returns rows until their size reaches `max_bytes`, at least one; the flag is false when there are more.
    pub fn query_within_bytes<'a>(
        &'a self,
        sql: &'static str,
        params: &'a [SqlParam<'a>],
        max_bytes: usize,
    ) -> StatementResult<'a, (Vec<SqlRow>, bool)> {
        match self {
            DbConnection::Sqlite(connection) => completed(sqlite::query_within_bytes(
                connection, sql, params, max_bytes,
            )),
            DbConnection::Postgres(client) => {
                pending(client.query_within_bytes(sql, params, max_bytes))
            }
        }
    }

    /// The first row, if any.
    pub fn query_first<'a>(
        &'a self,
        sql: &'static str,
        params: &'a [SqlParam<'a>],
    ) -> StatementResult<'a, Option<SqlRow>> {
        let first = |rows: Vec<SqlRow>| rows.into_iter().next();
        match self {
            DbConnection::Sqlite(connection) => {
                completed(sqlite::query(connection, sql, params).map(first))
            }
            DbConnection::Postgres(client) => pending(async move {
                let rows = client.query(sql, params).await?;
                Ok(first(rows))
            }),
        }
    }

    /// Transaction control: begin, savepoint, commit, rollback.
    pub fn control_transaction<'a>(&'a self, sql: &'static str) -> StatementResult<'a, ()> {
        match self {
            DbConnection::Sqlite(connection) => {
                completed(sqlite::execute(connection, sql, &[]).map(drop))
            }
            DbConnection::Postgres(client) => pending(client.execute_batch(sql)),
        }
    }

    /// Takes the first fault of the connection since the last call.
    pub fn take_fault(&self) -> Option<TransactionFault> {
        match self {
            DbConnection::Sqlite(_) => None,
            DbConnection::Postgres(client) => client.fault.take(),
        }
    }

    pub fn has_fault(&self) -> bool {
        match self {
            DbConnection::Sqlite(_) => false,
            DbConnection::Postgres(client) => client.fault.get().is_some(),
        }
    }

    /// Runs several statements without parameters or results, for migrations.
    pub fn execute_batch<'a>(&'a self, sql: &'a str) -> StatementResult<'a, ()> {
        match self {
            DbConnection::Sqlite(connection) => completed(
                connection
                    .execute_batch(sql)
                    .map_err(sqlite::classify_error),
            ),
            DbConnection::Postgres(client) => pending(client.execute_batch(sql)),
        }
    }
}
