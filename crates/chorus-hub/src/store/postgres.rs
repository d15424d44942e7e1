//! PostgreSQL: the shared store of several hubs. One client for the writer, a pool of them for readers.

use super::line::Line;
use super::value::{DbError, Param, Row, Trouble, Value};
use chorus_wire::secret::Secret;
use futures_util::TryStreamExt;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::pin::pin;
use std::time::Duration;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{
    Statement,
    error::{Severity, SqlState},
};

/// A statement that takes longer is the database's trouble, not a reason to hang a request.
const STATEMENT_TIMEOUT: &str = "10s";
/// A hub that stands still, or is cut off, in the middle of a group gives the group's lock back after this.
const IDLE_TIMEOUT: &str = "5s";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that does not answer for this long is given up on: its own timeout cannot help when it is the network that is gone.
pub(super) const UNANSWERED: Duration = Duration::from_secs(15);
/// How long a hub waits for the one before it to be gone.
const ALONE_TRIES: u32 = 30;
const ALONE_PAUSE: Duration = Duration::from_millis(100);

/// One connection and the statements prepared on it.
pub(crate) struct Client {
    client: tokio_postgres::Client,
    statements: RefCell<HashMap<&'static str, Statement>>,
    /// The first that happened since somebody asked.
    pub(super) trouble: Cell<Option<Trouble>>,
}

impl Client {
    /// Connects on the runtime that it is called on, which must go on running for as long as the client is used.
    pub async fn connect(url: &Secret) -> Result<Self, DbError> {
        let mut line = Line::read(url.expose()).map_err(DbError::Other)?;
        let tls = line.tls.connector().map_err(DbError::Unavailable)?;
        let config = &mut line.config;
        config
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_user_timeout(UNANSWERED)
            .application_name("chorus");
        config
            .keepalives_idle(UNANSWERED)
            .keepalives_interval(CONNECT_TIMEOUT)
            .keepalives_retries(2);
        // The driver's own bound ends with the socket; what answers there may still say nothing.
        let connecting = tokio::time::timeout(UNANSWERED, config.connect(tls)).await;
        let connecting = connecting
            .map_err(|_| DbError::Unavailable("the server did not answer in time".into()))?;
        let (client, connection) = connecting.map_err(|e| match refused(e) {
            DbError::Unavailable(said) => {
                DbError::Unavailable(format!("{said}{}", line.advice(&said)))
            }
            other @ (DbError::Unique | DbError::Other(_)) => other,
        })?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a database connection ended");
            }
        });
        let settings = format!(
            "set statement_timeout = '{STATEMENT_TIMEOUT}'; set idle_in_transaction_session_timeout = '{IDLE_TIMEOUT}';
             set synchronous_commit = on;
             set session characteristics as transaction isolation level read committed; set time zone 'UTC'"
        );
        client.batch_execute(&settings).await.map_err(refused)?;
        Ok(Self {
            client,
            statements: RefCell::default(),
            trouble: Cell::default(),
        })
    }

    /// Takes the lock of a hub on its database: exclusive when it has no shared bus, since a second one would tell its
    /// streams nothing of what the first commits; otherwise shared with those who have one too. A hub that was killed loses
    /// it as soon as the server sees its connection close.
    pub async fn hold(&self, alone: bool) -> Result<(), DbError> {
        let sql = match alone {
            true => "select case when pg_try_advisory_lock(4842714) then 1 else 0 end",
            false => "select case when pg_try_advisory_lock_shared(4842714) then 1 else 0 end",
        };
        for _ in 0..ALONE_TRIES {
            let row = self.query(sql, &[]).await?;
            if row.first().map(|row| row.int(0)).transpose()? == Some(1) {
                return Ok(());
            }
            tokio::time::sleep(ALONE_PAUSE).await;
        }
        Err(DbError::Unavailable(match alone {
            true => "another hub is using this database".into(),
            false => "a hub without a shared bus is using this database".into(),
        }))
    }

    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    async fn prepared(&self, sql: &'static str) -> Result<Statement, DbError> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self
            .client
            .prepare(sql)
            .await
            .map_err(|e| self.refused(e))?;
        self.statements.borrow_mut().insert(sql, statement.clone());
        Ok(statement)
    }

    pub async fn execute(&self, sql: &'static str, params: &[Param<'_>]) -> Result<u64, DbError> {
        let statement = self.prepared(sql).await?;
        self.client
            .execute(&statement, &dynamic(params))
            .await
            .map_err(|e| self.refused(e))
    }

    pub async fn query(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, DbError> {
        let statement = self.prepared(sql).await?;
        let rows = self
            .client
            .query(&statement, &dynamic(params))
            .await
            .map_err(|e| self.refused(e))?;
        rows.iter().map(row).collect()
    }

    /// The rest of the answer is thrown away by the connection as it comes.
    pub async fn query_within(
        &self,
        sql: &'static str,
        params: &[Param<'_>],
        bytes: usize,
    ) -> Result<(Vec<Row>, bool), DbError> {
        let statement = self.prepared(sql).await?;
        let mut rows = pin!(
            self.client
                .query_raw(&statement, dynamic(params))
                .await
                .map_err(|e| self.refused(e))?
        );
        let (mut answer, mut size) = (Vec::new(), 0);
        while let Some(next) = rows.try_next().await.map_err(|e| self.refused(e))? {
            if size >= bytes {
                return Ok((answer, false));
            }
            let row = row(&next)?;
            size += row.size();
            answer.push(row);
        }
        Ok((answer, true))
    }

    /// Inserts rows that are all alike, without waiting for one before the next is on its way.
    pub async fn insert_all(&self, sql: &str, rows: &[Row]) -> Result<(), DbError> {
        let statement = self
            .client
            .prepare(sql)
            .await
            .map_err(|e| self.refused(e))?;
        let one = async |row: &Row| {
            let params: Vec<Param<'_>> = row.0.iter().map(Param::from).collect();
            self.client
                .execute(&statement, &dynamic(&params))
                .await
                .map(drop)
                .map_err(|e| self.refused(e))
        };
        futures_util::future::try_join_all(rows.iter().map(one))
            .await
            .map(drop)
    }

    pub async fn batch(&self, sql: &str) -> Result<(), DbError> {
        self.client
            .batch_execute(sql)
            .await
            .map_err(|e| self.refused(e))
    }

    /// Remembers what the error says of the connection, whatever becomes of the error.
    fn refused(&self, error: tokio_postgres::Error) -> DbError {
        let trouble = trouble(&error);
        if outdated(&error) {
            self.statements.borrow_mut().clear();
        }
        if trouble.is_some() {
            tracing::debug!(
                cause = describe(&error),
                ?trouble,
                "a statement came to nothing with its transaction"
            );
        }
        if self.trouble.get().is_none() {
            self.trouble.set(trouble);
        }
        match trouble {
            Some(Trouble::Undone | Trouble::Gone) => DbError::Unavailable(describe(&error)),
            None => refused(error),
        }
    }
}

fn dynamic<'a>(params: &'a [Param<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params
        .iter()
        .map(|param| param as &(dyn ToSql + Sync))
        .collect()
}

fn row(row: &tokio_postgres::Row) -> Result<Row, DbError> {
    let value = |place: usize, ty: &Type| -> Result<Value, DbError> {
        let wrong = |e: tokio_postgres::Error| DbError::Other(e.to_string());
        Ok(if *ty == Type::INT8 {
            row.try_get::<_, Option<i64>>(place)
                .map_err(wrong)?
                .map_or(Value::Null, Value::Int)
        } else if *ty == Type::INT4 {
            row.try_get::<_, Option<i32>>(place)
                .map_err(wrong)?
                .map_or(Value::Null, |n| Value::Int(n.into()))
        } else if *ty == Type::BYTEA {
            row.try_get::<_, Option<Vec<u8>>>(place)
                .map_err(wrong)?
                .map_or(Value::Null, Value::Bytes)
        } else {
            row.try_get::<_, Option<String>>(place)
                .map_err(wrong)?
                .map_or(Value::Null, Value::Text)
        })
    };
    let columns = row.columns().iter().enumerate();
    Ok(Row(columns
        .map(|(place, column)| value(place, column.type_()))
        .collect::<Result<_, _>>()?))
}

/// A plan of before somebody changed a table, or of a session that is not this one any more.
fn outdated(error: &tokio_postgres::Error) -> bool {
    let replanned = error
        .as_db_error()
        .and_then(tokio_postgres::error::DbError::routine)
        == Some("RevalidateCachedQuery");
    replanned || error.code() == Some(&SqlState::INVALID_SQL_STATEMENT_NAME)
}

fn trouble(error: &tokio_postgres::Error) -> Option<Trouble> {
    let Some(said) = error.as_db_error() else {
        return Some(Trouble::Gone);
    };
    // After a failover the old primary may still answer, and take no writes: the new one is found by connecting again.
    let ended = matches!(
        said.parsed_severity(),
        Some(Severity::Fatal | Severity::Panic)
    );
    if ended || *said.code() == SqlState::READ_ONLY_SQL_TRANSACTION {
        return Some(Trouble::Gone);
    }
    let undone = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    (undone.contains(said.code()) || outdated(error)).then_some(Trouble::Undone)
}

fn refused(error: tokio_postgres::Error) -> DbError {
    match error.code() {
        Some(code) if *code == SqlState::UNIQUE_VIOLATION => DbError::Unique,
        // Class 40 (serialisation), 53 (resources), 55/57 (locks, shutdown, timeouts): try again. No code: the connection is gone.
        Some(code) if ["40", "53", "55", "57", "08"].contains(&&code.code()[..2]) => {
            DbError::Unavailable(describe(&error))
        }
        Some(_) => DbError::Other(describe(&error)),
        None => DbError::Unavailable(describe(&error)),
    }
}

/// The server's own words, or the network's; the driver's short text leaves them out.
fn describe(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(said), _) => format!("{} ({})", said.message(), said.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}
