//! A database connection of either engine. Both run the same SQL text with `$n` placeholders.

use super::sql_value::{DbError, SqlParam, SqlRow};
use super::transaction_fault::TransactionFault;
use super::{postgres, sqlite};

/// The writer's connection inside a transaction, or a reader's connection.
pub(crate) enum DbConnection<'c> {
    Sqlite(&'c rusqlite::Connection),
    Postgres(&'c postgres::PostgresClient),
}

impl DbConnection<'_> {
    /// Runs a statement. Returns how many rows changed.
    pub async fn execute(
        &self,
        sql: &'static str,
        params: &[SqlParam<'_>],
    ) -> Result<u64, DbError> {
        match self {
            DbConnection::Sqlite(connection) => sqlite::execute(connection, sql, params),
            DbConnection::Postgres(client) => client.execute(sql, params).await,
        }
    }

    pub async fn query(
        &self,
        sql: &'static str,
        params: &[SqlParam<'_>],
    ) -> Result<Vec<SqlRow>, DbError> {
        match self {
            DbConnection::Sqlite(connection) => sqlite::query(connection, sql, params),
            DbConnection::Postgres(client) => client.query(sql, params).await,
        }
    }

    /// Returns rows until their size reaches `max_bytes`, at least one; the flag is false when there are more.
    pub async fn query_within_bytes(
        &self,
        sql: &'static str,
        params: &[SqlParam<'_>],
        max_bytes: usize,
    ) -> Result<(Vec<SqlRow>, bool), DbError> {
        match self {
            DbConnection::Sqlite(connection) => {
                sqlite::query_within_bytes(connection, sql, params, max_bytes)
            }
            DbConnection::Postgres(client) => {
                client.query_within_bytes(sql, params, max_bytes).await
            }
        }
    }

    /// The first row, if any.
    pub async fn query_first(
        &self,
        sql: &'static str,
        params: &[SqlParam<'_>],
    ) -> Result<Option<SqlRow>, DbError> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    /// Transaction control: begin, savepoint, commit, rollback.
    pub async fn control_transaction(&self, sql: &'static str) -> Result<(), DbError> {
        match self {
            DbConnection::Sqlite(connection) => sqlite::execute(connection, sql, &[]).map(drop),
            DbConnection::Postgres(client) => client.execute_batch(sql).await,
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
    pub async fn execute_batch(&self, sql: &str) -> Result<(), DbError> {
        match self {
            DbConnection::Sqlite(connection) => connection
                .execute_batch(sql)
                .map_err(sqlite::classify_error),
            DbConnection::Postgres(client) => client.execute_batch(sql).await,
        }
    }
}
