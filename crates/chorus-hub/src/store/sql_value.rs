//! Parameters, rows and errors of SQL statements, in the types that both engines have: integer, text, bytes, null.

use super::ids::RowId;
use bytes::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// A parameter of a statement.
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

    pub fn optional_bytes(bytes: Option<&'a [u8]>) -> Self {
        bytes.map_or(SqlParam::Null, SqlParam::Bytes)
    }

    pub fn optional_int(number: Option<i64>) -> Self {
        number.map_or(SqlParam::Null, SqlParam::Int)
    }

    pub fn id(id: impl RowId) -> Self {
        SqlParam::Int(id.to_number())
    }

    pub fn optional_id(id: Option<impl RowId>) -> Self {
        id.map_or(SqlParam::Null, SqlParam::id)
    }
}

/// One column of a row.
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

/// One row of a result.
#[derive(Clone, Debug)]
pub(crate) struct SqlRow(pub Vec<SqlValue>);

impl SqlRow {
    /// The size of its texts and byte strings.
    pub fn byte_len(&self) -> usize {
        let size = |value: &SqlValue| match value {
            SqlValue::Text(text) => text.len(),
            SqlValue::Bytes(bytes) => bytes.len(),
            SqlValue::Null | SqlValue::Int(_) => 0,
        };
        self.0.iter().map(size).sum()
    }

    /// Reads the columns one after the other. A row with one column is read by `int(0)` or `text(0)`.
    pub fn columns(self) -> ColumnReader {
        ColumnReader {
            row: self,
            next_column: 0,
        }
    }

    fn type_error(&self, column: usize, expected: &str) -> DbError {
        DbError::Other(format!("column {column} is not {expected}"))
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

    pub fn id<I: RowId>(&self, column: usize) -> Result<I, DbError> {
        self.int(column).map(I::from_number)
    }

    /// Moves the text out of the row, so each column can be read once.
    pub fn text(&mut self, column: usize) -> Result<String, DbError> {
        match self.maybe_text(column)? {
            Some(text) => Ok(text),
            None => Err(self.type_error(column, "a text")),
        }
    }

    fn maybe_text(&mut self, column: usize) -> Result<Option<String>, DbError> {
        match self.0.get_mut(column) {
            Some(SqlValue::Text(text)) => Ok(Some(std::mem::take(text))),
            Some(SqlValue::Null) => Ok(None),
            Some(SqlValue::Int(_) | SqlValue::Bytes(_)) | None => {
                Err(self.type_error(column, "a text"))
            }
        }
    }

    fn maybe_bytes(&mut self, column: usize) -> Result<Option<Vec<u8>>, DbError> {
        match self.0.get_mut(column) {
            Some(SqlValue::Bytes(bytes)) => Ok(Some(std::mem::take(bytes))),
            Some(SqlValue::Null) => Ok(None),
            Some(SqlValue::Int(_) | SqlValue::Text(_)) | None => {
                Err(self.type_error(column, "bytes"))
            }
        }
    }
}

/// Reads the columns of one row in the order of its column list, each once.
///
/// Rust evaluates the fields of a struct literal in the order in which they are written. A reader
/// therefore writes them in the order of the column list.
pub(crate) struct ColumnReader {
    row: SqlRow,
    next_column: usize,
}

impl ColumnReader {
    fn advance_column(&mut self) -> usize {
        let column = self.next_column;
        self.next_column += 1;
        column
    }

    pub fn int(&mut self) -> Result<i64, DbError> {
        let column = self.advance_column();
        self.row.int(column)
    }

    pub fn id<I: RowId>(&mut self) -> Result<I, DbError> {
        self.int().map(I::from_number)
    }

    pub fn maybe_id<I: RowId>(&mut self) -> Result<Option<I>, DbError> {
        Ok(self.maybe_int()?.map(I::from_number))
    }

    pub fn maybe_int(&mut self) -> Result<Option<i64>, DbError> {
        let column = self.advance_column();
        self.row.maybe_int(column)
    }

    pub fn text(&mut self) -> Result<String, DbError> {
        let column = self.advance_column();
        self.row.text(column)
    }

    pub fn maybe_text(&mut self) -> Result<Option<String>, DbError> {
        let column = self.advance_column();
        self.row.maybe_text(column)
    }

    pub fn maybe_bytes(&mut self) -> Result<Option<Vec<u8>>, DbError> {
        let column = self.advance_column();
        self.row.maybe_bytes(column)
    }

    /// Checks in debug builds that the reader and its column list have the same length.
    pub fn finish(self) {
        debug_assert_eq!(
            self.next_column,
            self.row.0.len(),
            "a row reader and its column list differ"
        );
    }
}

/// A type that is read from a row. The column list stands beside the implementation.
pub(crate) trait FromRow: Sized {
    /// Reads the columns in the order of the list; a query may select further columns after them.
    fn from_columns(columns: &mut ColumnReader) -> Result<Self, DbError>;

    fn from_row(row: SqlRow) -> Result<Self, DbError> {
        let mut columns = row.columns();
        let value = Self::from_columns(&mut columns)?;
        columns.finish();
        Ok(value)
    }
}

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DbError {
    /// A unique key is taken. The error does not say which one, because SQLite does not name constraints.
    #[error("a unique key is taken")]
    UniqueViolation,
    /// The database is busy, full or unreachable; the statement had no effect.
    #[error("{0}")]
    Unavailable(String),
    /// The disk is full; the statement had no effect.
    #[error("{0}")]
    DiskFull(String),
    #[error("{0}")]
    Other(String),
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
