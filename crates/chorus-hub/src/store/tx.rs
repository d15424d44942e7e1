//! One statement, two engines: the same text with `$n` placeholders runs on both.

use super::value::{DbError, Param, Row, Trouble};
use super::{postgres, sqlite};

/// A connection inside a transaction, or one that only reads.
pub(crate) enum Tx<'c> {
    Sqlite(&'c rusqlite::Connection),
    Postgres(&'c postgres::Client),
}

impl Tx<'_> {
    /// How many rows changed.
    pub async fn execute(&self, sql: &'static str, params: &[Param<'_>]) -> Result<u64, DbError> {
        match self {
            Tx::Sqlite(connection) => sqlite::execute(connection, sql, params),
            Tx::Postgres(client) => client.execute(sql, params).await,
        }
    }

    pub async fn query(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DbError> {
        match self {
            Tx::Sqlite(connection) => sqlite::query(connection, sql, params),
            Tx::Postgres(client) => client.query(sql, params).await,
        }
    }

    /// Rows until they hold `bytes`, at least one; false when there were more.
    pub async fn query_within(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
        bytes: usize,
    ) -> Result<(Vec<Row>, bool), DbError> {
        match self {
            Tx::Sqlite(connection) => sqlite::query_within(connection, sql, params, bytes),
            Tx::Postgres(client) => client.query_within(sql, params, bytes).await,
        }
    }

    /// The first row, if any.
    pub async fn one(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Option<Row>, DbError> {
        Ok(self.query(sql, params).await?.into_iter().next())
    }

    /// Transaction control: begin, savepoint, commit and their like.
    pub async fn control(&self, sql: &'static str) -> Result<(), DbError> {
        match self {
            Tx::Sqlite(connection) => sqlite::execute(connection, sql, &[]).map(drop),
            Tx::Postgres(client) => client.batch(sql).await,
        }
    }

    /// What happened to the connection, said once.
    pub fn trouble(&self) -> Option<Trouble> {
        match self {
            Tx::Sqlite(_) => None,
            Tx::Postgres(client) => client.trouble.take(),
        }
    }

    pub fn in_trouble(&self) -> bool {
        match self {
            Tx::Sqlite(_) => false,
            Tx::Postgres(client) => client.trouble.get().is_some(),
        }
    }

    /// Many statements without parameters or answers: migrations.
    pub async fn batch(&self, sql: &str) -> Result<(), DbError> {
        match self {
            Tx::Sqlite(connection) => connection.execute_batch(sql).map_err(sqlite::refused),
            Tx::Postgres(client) => client.batch(sql).await,
        }
    }
}
