//! The values that both engines carry: whole numbers, texts, bytes, and nothing.

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// A value on its way into a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SqlParam<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> SqlParam<'a> {
    pub fn optional_text(text: Option<&'a str>) -> Self {
        text.map_or(SqlParam::Null, SqlParam::Text)
    }

    pub fn optional_int(number: Option<i64>) -> Self {
        number.map_or(SqlParam::Null, SqlParam::Int)
    }
}

/// A value that came back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SqlValue {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl<'a> From<&'a SqlValue> for SqlParam<'a> {
    fn from(value: &'a SqlValue) -> Self {
        match value {
            SqlValue::Null => SqlParam::Null,
            SqlValue::Int(number) => SqlParam::Int(*number),
            SqlValue::Text(text) => SqlParam::Text(text),
            SqlValue::Bytes(bytes) => SqlParam::Bytes(bytes),
        }
    }
}

/// One row of an answer.
#[derive(Clone, Debug)]
pub(crate) struct SqlRow(pub Vec<SqlValue>);

impl SqlRow {
    /// What it holds in texts and bytes.
    pub fn byte_len(&self) -> usize {
        let size = |value: &SqlValue| match value {
            SqlValue::Text(text) => text.len(),
            SqlValue::Bytes(bytes) => bytes.len(),
            SqlValue::Null | SqlValue::Int(_) => 0,
        };
        self.0.iter().map(size).sum()
    }

    fn type_error(&self, column: usize, what: &str) -> DbError {
        DbError::Other(format!("column {column} is not {what}"))
    }

    pub fn int(&self, column: usize) -> Result<i64, DbError> {
        self.maybe_int(column)?
            .ok_or_else(|| self.type_error(column, "a number"))
    }

    pub fn maybe_int(&self, column: usize) -> Result<Option<i64>, DbError> {
        match self.0.get(column) {
            Some(SqlValue::Int(number)) => Ok(Some(*number)),
            Some(SqlValue::Null) => Ok(None),
            Some(SqlValue::Text(_) | SqlValue::Bytes(_)) | None => {
                Err(self.type_error(column, "a number"))
            }
        }
    }

    /// Takes the text out of the row: read each column once.
    pub fn text(&mut self, column: usize) -> Result<String, DbError> {
        match self.maybe_text(column)? {
            Some(text) => Ok(text),
            None => Err(self.type_error(column, "a text")),
        }
    }

    pub fn maybe_text(&mut self, column: usize) -> Result<Option<String>, DbError> {
        match self.0.get_mut(column) {
            Some(SqlValue::Text(text)) => Ok(Some(std::mem::take(text))),
            Some(SqlValue::Null) => Ok(None),
            Some(SqlValue::Int(_) | SqlValue::Bytes(_)) | None => {
                Err(self.type_error(column, "a text"))
            }
        }
    }

    pub fn maybe_bytes(&mut self, column: usize) -> Result<Option<Vec<u8>>, DbError> {
        match self.0.get_mut(column) {
            Some(SqlValue::Bytes(bytes)) => Ok(Some(std::mem::take(bytes))),
            Some(SqlValue::Null) => Ok(None),
            Some(SqlValue::Int(_) | SqlValue::Text(_)) | None => {
                Err(self.type_error(column, "bytes"))
            }
        }
    }
}

/// What an engine can say no with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DbError {
    /// A unique key is taken. Which one is not said: SQLite does not name constraints.
    #[error("a unique key is taken")]
    UniqueViolation,
    /// The database is busy, full or gone; nothing was done.
    #[error("{0}")]
    Unavailable(String),
    #[error("{0}")]
    Other(String),
}

/// What happened to a connection while a statement ran, for whoever owns the connection: those who wrote the statement make
/// an answer of its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionFault {
    /// The server undid the transaction for the sake of another, or for a plan that is out of date: run again, it may pass.
    RolledBack,
    /// The connection is gone, and with it whatever it had not committed.
    ConnectionLost,
}

impl ToSql for SqlParam<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            SqlParam::Null => Ok(IsNull::Yes),
            SqlParam::Int(number) => number.to_sql(ty, out),
            SqlParam::Text(text) => text.to_sql(ty, out),
            SqlParam::Bytes(bytes) => bytes.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
