//! The PostgreSQL engine, for hubs that share a database: one client for the writer, a pool of clients for readers.

use super::postgres_url::PostgresUrl;
use super::sql_value::{DbError, SqlParam, SqlRow, SqlValue};
use super::transaction_fault::TransactionFault;
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

/// Max duration of a statement, so that a slow database fails a request instead of hanging it.
const STATEMENT_TIMEOUT: &str = "10s";
/// After this the server ends an idle transaction, so that a stalled or disconnected hub releases the group's advisory lock.
const IDLE_TIMEOUT: &str = "5s";
/// The server's own keepalives on this connection. If the machine of a hub vanishes, the server ends its session, and with it the
/// hub lock, after 20 seconds instead of hours, so that a successor can start.
const SERVER_KEEPALIVE_IDLE_S: u32 = 10;
/// The same while the server waits for an acknowledgement, when no keepalives are sent.
const SERVER_USER_TIMEOUT_MS: u32 = 20_000;
/// Max time until a connection stands: some round trips to a server in the same network. It is shorter than the statement
/// timeout, so that a server that is away fails a request no later than a slow one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// After this without an answer the hub drops the connection. The statement timeout does not help when the network is down.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);
/// How often a starting hub tries to take the hub lock while the one before it shuts down: three seconds in all, after which
/// it is another hub that runs and no shutdown.
const HUB_LOCK_ATTEMPTS: u32 = 30;
/// Short beside the start of a hub, so that a restart takes no longer for it.
const HUB_LOCK_PAUSE: Duration = Duration::from_millis(100);

/// One connection and the statements prepared on it.
pub(crate) struct PostgresClient {
    client: tokio_postgres::Client,
    statements: RefCell<HashMap<&'static str, Statement>>,
    /// The first fault since the last `take_fault`.
    pub(super) fault: Cell<Option<TransactionFault>>,
}

impl PostgresClient {
    /// Connects on the current runtime, which must keep running for as long as the client is used.
    pub async fn connect(url: &Secret) -> Result<Self, DbError> {
        let mut parsed_url = PostgresUrl::parse(url.expose()).map_err(DbError::Other)?;
        let tls = parsed_url
            .tls
            .build_connector()
            .map_err(DbError::Unavailable)?;
        let config = &mut parsed_url.config;
        config
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_user_timeout(RESPONSE_TIMEOUT)
            .application_name("chorus");
        config
            .keepalives_idle(RESPONSE_TIMEOUT)
            .keepalives_interval(CONNECT_TIMEOUT)
            .keepalives_retries(2);
        // The driver's connect timeout covers only the socket; the server behind it may still not answer.
        let connecting = tokio::time::timeout(RESPONSE_TIMEOUT, config.connect(tls)).await;
        let connecting = connecting
            .map_err(|_| DbError::Unavailable("the server did not answer in time".into()))?;
        let (client, connection) = connecting.map_err(|e| match classify_error(e) {
            DbError::Unavailable(cause) => {
                DbError::Unavailable(format!("{cause}{}", parsed_url.tls_advice(&cause)))
            }
            other @ (DbError::UniqueViolation | DbError::DiskFull(_) | DbError::Other(_)) => other,
        })?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a database connection ended");
            }
        });
        let settings = format!(
            "set statement_timeout = '{STATEMENT_TIMEOUT}'; set idle_in_transaction_session_timeout = '{IDLE_TIMEOUT}';
             set synchronous_commit = on;
             set tcp_keepalives_idle = {SERVER_KEEPALIVE_IDLE_S}; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 2;
             set tcp_user_timeout = {SERVER_USER_TIMEOUT_MS};
             set session characteristics as transaction isolation level read committed; set time zone 'UTC'"
        );
        client
            .batch_execute(&settings)
            .await
            .map_err(classify_error)?;
        Ok(Self {
            client,
            statements: RefCell::default(),
            fault: Cell::default(),
        })
    }

    /// Takes the hub lock of the database. It is exclusive for a hub without a cluster, because its streams would miss the
    /// commits of a second hub; the hubs of a cluster share it. A killed hub loses it when the server sees its connection close.
    pub async fn acquire_hub_lock(&self, exclusive: bool) -> Result<(), DbError> {
        let sql = match exclusive {
            true => "select case when pg_try_advisory_lock(4842714) then 1 else 0 end",
            false => "select case when pg_try_advisory_lock_shared(4842714) then 1 else 0 end",
        };
        for _ in 0..HUB_LOCK_ATTEMPTS {
            let row = self.query(sql, &[]).await?;
            if row.first().map(|row| row.int(0)).transpose()? == Some(1) {
                return Ok(());
            }
            tokio::time::sleep(HUB_LOCK_PAUSE).await;
        }
        Err(DbError::Unavailable(match exclusive {
            true => "another hub is using this database".into(),
            false => "a hub without a shared bus is using this database".into(),
        }))
    }

    pub fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    async fn prepare_cached(&self, sql: &'static str) -> Result<Statement, DbError> {
        if let Some(statement) = self.statements.borrow().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self
            .client
            .prepare(sql)
            .await
            .map_err(|e| self.record_error(e))?;
        self.statements.borrow_mut().insert(sql, statement.clone());
        Ok(statement)
    }

    pub async fn execute(
        &self,
        sql: &'static str,
        params: &[SqlParam<'_>],
    ) -> Result<u64, DbError> {
        let statement = self.prepare_cached(sql).await?;
        self.client
            .execute(&statement, &as_sql_params(params))
            .await
            .map_err(|e| self.record_error(e))
    }

    pub async fn query(
        &self,
        sql: &'static str,
        params: &[SqlParam<'_>],
    ) -> Result<Vec<SqlRow>, DbError> {
        let statement = self.prepare_cached(sql).await?;
        let rows = self
            .client
            .query(&statement, &as_sql_params(params))
            .await
            .map_err(|e| self.record_error(e))?;
        rows.iter().map(convert_row).collect()
    }

    /// The connection discards the remaining rows as they arrive.
    pub async fn query_within_bytes(
        &self,
        sql: &'static str,
        params: &[SqlParam<'_>],
        max_bytes: usize,
    ) -> Result<(Vec<SqlRow>, bool), DbError> {
        let statement = self.prepare_cached(sql).await?;
        let mut rows = pin!(
            self.client
                .query_raw(&statement, as_sql_params(params))
                .await
                .map_err(|e| self.record_error(e))?
        );
        let mut answer = Vec::new();
        let mut size = 0;
        while let Some(next) = rows.try_next().await.map_err(|e| self.record_error(e))? {
            if size >= max_bytes {
                return Ok((answer, false));
            }
            let row = convert_row(&next)?;
            size += row.byte_len();
            answer.push(row);
        }
        Ok((answer, true))
    }

    /// Inserts rows with one statement, pipelined: it does not wait for one row before it sends the next.
    pub async fn insert_rows(&self, sql: &str, rows: &[SqlRow]) -> Result<(), DbError> {
        let statement = self
            .client
            .prepare(sql)
            .await
            .map_err(|e| self.record_error(e))?;
        let insert_one = async |row: &SqlRow| {
            let params: Vec<SqlParam<'_>> = row.0.iter().map(SqlParam::from).collect();
            self.client
                .execute(&statement, &as_sql_params(&params))
                .await
                .map(drop)
                .map_err(|e| self.record_error(e))
        };
        futures_util::future::try_join_all(rows.iter().map(insert_one))
            .await
            .map(drop)
    }

    pub async fn execute_batch(&self, sql: &str) -> Result<(), DbError> {
        self.client
            .batch_execute(sql)
            .await
            .map_err(|e| self.record_error(e))
    }

    /// Records the connection fault behind an error, even if the caller ignores the error.
    fn record_error(&self, error: tokio_postgres::Error) -> DbError {
        let fault = classify_fault(&error);
        if is_stale_plan(&error) {
            self.statements.borrow_mut().clear();
        }
        if fault.is_some() {
            tracing::debug!(
                cause = describe_error(&error),
                ?fault,
                "a statement failed and its transaction was rolled back"
            );
        }
        if self.fault.get().is_none() {
            self.fault.set(fault);
        }
        match fault {
            Some(TransactionFault::RolledBack | TransactionFault::ConnectionLost) => {
                DbError::Unavailable(describe_error(&error))
            }
            None => classify_error(error),
        }
    }
}

fn as_sql_params<'a>(params: &'a [SqlParam<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    params
        .iter()
        .map(|param| param as &(dyn ToSql + Sync))
        .collect()
}

fn convert_row(row: &tokio_postgres::Row) -> Result<SqlRow, DbError> {
    let value = |column_index: usize, ty: &Type| -> Result<SqlValue, DbError> {
        let conversion_error = |e: tokio_postgres::Error| DbError::Other(e.to_string());
        Ok(if *ty == Type::INT8 {
            row.try_get::<_, Option<i64>>(column_index)
                .map_err(conversion_error)?
                .map_or(SqlValue::Null, SqlValue::Int)
        } else if *ty == Type::INT4 {
            row.try_get::<_, Option<i32>>(column_index)
                .map_err(conversion_error)?
                .map_or(SqlValue::Null, |n| SqlValue::Int(n.into()))
        } else if *ty == Type::BYTEA {
            row.try_get::<_, Option<Vec<u8>>>(column_index)
                .map_err(conversion_error)?
                .map_or(SqlValue::Null, SqlValue::Bytes)
        } else {
            row.try_get::<_, Option<String>>(column_index)
                .map_err(conversion_error)?
                .map_or(SqlValue::Null, SqlValue::Text)
        })
    };
    let columns = row.columns().iter().enumerate();
    Ok(SqlRow(
        columns
            .map(|(column_index, column)| value(column_index, column.type_()))
            .collect::<Result<_, _>>()?,
    ))
}

/// The statement was prepared before a table changed, or in a session that has ended.
fn is_stale_plan(error: &tokio_postgres::Error) -> bool {
    let replanned = error
        .as_db_error()
        .and_then(tokio_postgres::error::DbError::routine)
        == Some("RevalidateCachedQuery");
    replanned || error.code() == Some(&SqlState::INVALID_SQL_STATEMENT_NAME)
}

fn classify_fault(error: &tokio_postgres::Error) -> Option<TransactionFault> {
    let Some(db_error) = error.as_db_error() else {
        return Some(TransactionFault::ConnectionLost);
    };
    // After a failover the old primary may still answer but accept no writes; a reconnect finds the new one.
    let is_fatal = matches!(
        db_error.parsed_severity(),
        Some(Severity::Fatal | Severity::Panic)
    );
    if is_fatal || *db_error.code() == SqlState::READ_ONLY_SQL_TRANSACTION {
        return Some(TransactionFault::ConnectionLost);
    }
    let rollback_codes = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
    ];
    (rollback_codes.contains(db_error.code()) || is_stale_plan(error))
        .then_some(TransactionFault::RolledBack)
}

fn classify_error(error: tokio_postgres::Error) -> DbError {
    match error.code() {
        Some(code) if *code == SqlState::UNIQUE_VIOLATION => DbError::UniqueViolation,
        // Class 40 (serialisation), 53 (resources), 55/57 (locks, shutdown, timeouts): retryable. No code: connection closed.
        Some(code) if ["40", "53", "55", "57", "08"].contains(&&code.code()[..2]) => {
            DbError::Unavailable(describe_error(&error))
        }
        Some(_) => DbError::Other(describe_error(&error)),
        None => DbError::Unavailable(describe_error(&error)),
    }
}

/// The message of the server or of the network, which the driver's own text leaves out.
fn describe_error(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(db_error), _) => format!("{} ({})", db_error.message(), db_error.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}
