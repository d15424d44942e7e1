//! The values that both engines carry: whole numbers, texts, bytes, and nothing.

use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// A value on its way into a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Param<'a> {
    Null,
    Int(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Param<'a> {
    pub fn text(text: Option<&'a str>) -> Self {
        text.map_or(Param::Null, Param::Text)
    }

    pub fn int(number: Option<i64>) -> Self {
        number.map_or(Param::Null, Param::Int)
    }
}

/// A value that came back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl<'a> From<&'a Value> for Param<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Param::Null,
            Value::Int(number) => Param::Int(*number),
            Value::Text(text) => Param::Text(text),
            Value::Bytes(bytes) => Param::Bytes(bytes),
        }
    }
}

/// One row of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Row(pub Vec<Value>);

impl Row {
    /// What it holds in texts and bytes.
    pub fn size(&self) -> usize {
        let size = |value: &Value| match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Null | Value::Int(_) => 0,
        };
        self.0.iter().map(size).sum()
    }

    fn wrong(&self, column: usize, what: &str) -> DbError {
        DbError::Other(format!("column {column} is not {what}"))
    }

    pub fn int(&self, column: usize) -> Result<i64, DbError> {
        self.maybe_int(column)?
            .ok_or_else(|| self.wrong(column, "a number"))
    }

    pub fn maybe_int(&self, column: usize) -> Result<Option<i64>, DbError> {
        match self.0.get(column) {
            Some(Value::Int(number)) => Ok(Some(*number)),
            Some(Value::Null) => Ok(None),
            Some(Value::Text(_) | Value::Bytes(_)) | None => Err(self.wrong(column, "a number")),
        }
    }

    /// Takes the text out of the row: read each column once.
    pub fn text(&mut self, column: usize) -> Result<String, DbError> {
        match self.maybe_text(column)? {
            Some(text) => Ok(text),
            None => Err(self.wrong(column, "a text")),
        }
    }

    pub fn maybe_text(&mut self, column: usize) -> Result<Option<String>, DbError> {
        match self.0.get_mut(column) {
            Some(Value::Text(text)) => Ok(Some(std::mem::take(text))),
            Some(Value::Null) => Ok(None),
            Some(Value::Int(_) | Value::Bytes(_)) | None => Err(self.wrong(column, "a text")),
        }
    }

    pub fn maybe_bytes(&mut self, column: usize) -> Result<Option<Vec<u8>>, DbError> {
        match self.0.get_mut(column) {
            Some(Value::Bytes(bytes)) => Ok(Some(std::mem::take(bytes))),
            Some(Value::Null) => Ok(None),
            Some(Value::Int(_) | Value::Text(_)) | None => Err(self.wrong(column, "bytes")),
        }
    }
}

/// What an engine can say no with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DbError {
    /// A unique key is taken. Which one is not said: SQLite does not name constraints.
    #[error("a unique key is taken")]
    Unique,
    /// The database is busy, full or gone; nothing was done.
    #[error("{0}")]
    Unavailable(String),
    #[error("{0}")]
    Other(String),
}

/// What happened to a connection while a statement ran, for whoever owns the connection: those who wrote the statement make
/// an answer of its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The server undid the transaction for the sake of another, or for a plan that is out of date: run again, it may pass.
    Undone,
    /// The connection is gone, and with it whatever it had not committed.
    Gone,
}

impl ToSql for Param<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Param::Null => Ok(IsNull::Yes),
            Param::Int(number) => number.to_sql(ty, out),
            Param::Text(text) => text.to_sql(ty, out),
            Param::Bytes(bytes) => bytes.to_sql(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
