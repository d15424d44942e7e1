//! The read pool: read-only connections, each used by one reader at a time on a blocking thread.

use super::erased_work::{AnyAnswer, ErasedRead};
use super::simulated_connection::SimulatedConnection;
use super::transaction_fault::TransactionFault;
use super::{DatabaseUrl, DbConnection, DbError, postgres, sqlite};
use crate::Result;
use crate::simulation::{ConnectionRole, SimulatedDatabase};
use chorus_wire::Error;
use futures_util::FutureExt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Max concurrent reads. A SQLite read keeps a core of this machine busy, so more of them than a small machine has cores
/// finish no sooner.
const SQLITE_READERS: usize = 4;
/// A PostgreSQL read mostly waits for the network, so more of them overlap. Several hubs fit into the 100 connections that
/// a server allows by default.
const POSTGRES_READERS: usize = 16;

enum PooledConnection {
    Sqlite(rusqlite::Connection),
    Postgres(postgres::PostgresClient),
}

pub(super) struct ReadPool {
    database_url: DatabaseUrl,
    idle: Arc<Mutex<Vec<PooledConnection>>>,
    permits: Arc<Semaphore>,
}

impl ReadPool {
    pub fn new(database_url: DatabaseUrl) -> std::result::Result<Self, DbError> {
        let (idle, permits) = match &database_url {
            // Opens the first connection now, so that an unreadable file fails the start.
            DatabaseUrl::Sqlite(file) => (
                vec![PooledConnection::Sqlite(sqlite::open_reader(
                    &file.path,
                    file.page_caches.reader,
                )?)],
                SQLITE_READERS,
            ),
            DatabaseUrl::Postgres(_) => (Vec::new(), POSTGRES_READERS),
            DatabaseUrl::Simulated(_) => (Vec::new(), SQLITE_READERS),
        };
        Ok(Self {
            database_url,
            idle: Arc::new(Mutex::new(idle)),
            permits: Arc::new(Semaphore::new(permits)),
        })
    }

    pub async fn read(&self, work: ErasedRead) -> Result<AnyAnswer> {
        if let DatabaseUrl::Simulated(database) = &self.database_url {
            return read_simulated(database, work).await;
        }
        // While the database does not answer, reads queue up here. A read that waits longer than a read may take fails.
        let permit = tokio::time::timeout(
            postgres::RESPONSE_TIMEOUT,
            self.permits.clone().acquire_owned(),
        )
        .await;
        let permit =
            permit.map_err(|_| Error::unavailable("too many reads wait for the database"))?;
        let permit = permit.map_err(Error::unavailable)?;
        let database_url = self.database_url.clone();
        let idle = self.idle.clone();
        let task = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let pooled = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let (answer, returned) = match (database_url, pooled) {
                (DatabaseUrl::Sqlite(file), pooled) => {
                    let connection = match pooled {
                        Some(PooledConnection::Sqlite(connection)) => connection,
                        Some(PooledConnection::Postgres(_)) | None => {
                            sqlite::open_reader(&file.path, file.page_caches.reader)?
                        }
                    };
                    let answer = run_on_sqlite(&connection, work);
                    (answer, Some(PooledConnection::Sqlite(connection)))
                }
                (DatabaseUrl::Simulated(database), _) => {
                    let reader = SimulatedConnection::open(&database, ConnectionRole::Reader)?;
                    (run_on_sqlite(&reader, work), None)
                }
                (DatabaseUrl::Postgres(url), pooled) => {
                    tokio::runtime::Handle::current().block_on(async {
                        let client = match pooled {
                            Some(PooledConnection::Postgres(client)) if !client.is_closed() => {
                                client
                            }
                            Some(_) | None => postgres::PostgresClient::connect(&url).await?,
                        };
                        let answer = tokio::time::timeout(
                            postgres::RESPONSE_TIMEOUT,
                            work(&DbConnection::Postgres(&client)),
                        )
                        .await;
                        let answer = answer.map_err(|_| {
                            DbError::Unavailable("the database did not answer".into())
                        })?;
                        // A lost connection is not returned to the pool: the next reader opens a new one.
                        let returned = (client.fault.take()
                            != Some(TransactionFault::ConnectionLost))
                        .then_some(PooledConnection::Postgres(client));
                        Ok::<_, DbError>((answer, returned))
                    })?
                }
            };
            idle.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(returned);
            answer
        });
        task.await.map_err(Error::internal)?
    }
}

/// Reads without another thread, so that a simulation repeats (D-110). Other tasks run before the read, as they do when it
/// waits for a thread.
async fn read_simulated(
    database: &Arc<dyn SimulatedDatabase>,
    work: ErasedRead,
) -> Result<AnyAnswer> {
    tokio::task::yield_now().await;
    if let Some(cause) = database.outage() {
        return Err(Error::unavailable(cause));
    }
    let reader = SimulatedConnection::open(database, ConnectionRole::Reader)?;
    run_on_sqlite(&reader, work)
}

/// SQLite never waits, so `work` completes at its first poll. It runs in one transaction and sees one snapshot: without it, each
/// commit of the writer would empty the connection's page cache between two statements.
fn run_on_sqlite(connection: &rusqlite::Connection, work: ErasedRead) -> Result<AnyAnswer> {
    let answer = match sqlite::execute(connection, "begin", &[]) {
        Ok(_) => {
            let answer = work(&DbConnection::Sqlite(connection)).now_or_never();
            answer.unwrap_or_else(|| {
                Err(Error::internal(
                    "a read on SQLite waited for something else",
                ))
            })
        }
        Err(error) => Err(error.into()),
    };
    // Nothing was written, so a rollback loses nothing. An open snapshot would block the checkpoint.
    let _ = sqlite::execute(connection, "rollback", &[]);
    answer
}
