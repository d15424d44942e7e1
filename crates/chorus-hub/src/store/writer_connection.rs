//! The writer's connection to SQLite or PostgreSQL; a lost PostgreSQL connection is opened again.

use super::simulated_connection::SimulatedConnection;
use super::{DatabaseUrl, DbConnection, DbError, postgres, sqlite};
use crate::simulation::{ConnectionRole, SimulatedDatabase};
use std::sync::Arc;

/// The connection that the writer thread owns.
pub(super) enum WriterConnection {
    Sqlite(rusqlite::Connection),
    Postgres {
        url: chorus_wire::secret::Secret,
        exclusive: bool,
        client: Option<postgres::PostgresClient>,
    },
    Simulated(SimulatedConnection),
}

impl WriterConnection {
    pub async fn open(
        database_url: &DatabaseUrl,
        exclusive: bool,
    ) -> std::result::Result<Self, DbError> {
        Ok(match database_url {
            DatabaseUrl::Sqlite(file) => {
                WriterConnection::Sqlite(sqlite::open_writer(&file.path, file.page_caches.writer)?)
            }
            DatabaseUrl::Postgres(url) => WriterConnection::Postgres {
                url: url.clone(),
                exclusive,
                client: Some(connect_and_lock(url, exclusive).await?),
            },
            DatabaseUrl::Simulated(database) => WriterConnection::Simulated(
                SimulatedConnection::open(database, ConnectionRole::Writer)?,
            ),
        })
    }

    /// Drops a PostgreSQL connection that no longer answers.
    pub fn disconnect(&mut self) {
        match self {
            WriterConnection::Sqlite(_) => {}
            WriterConnection::Postgres { client, .. } => *client = None,
            WriterConnection::Simulated(connection) => {
                if !connection.is_autocommit() {
                    let end = if connection.database.late_commit_applies() {
                        "commit"
                    } else {
                        "rollback"
                    };
                    let _ = sqlite::execute(connection, end, &[]);
                }
            }
        }
    }

    /// The database of a simulation (D-110).
    pub fn simulated(&self) -> Option<Arc<dyn SimulatedDatabase>> {
        match self {
            WriterConnection::Sqlite(_) | WriterConnection::Postgres { .. } => None,
            WriterConnection::Simulated(connection) => Some(connection.database.clone()),
        }
    }

    /// The connection; reconnects if the last one was lost.
    pub async fn ensure_connected(&mut self) -> std::result::Result<DbConnection<'_>, DbError> {
        match self {
            WriterConnection::Sqlite(connection) => Ok(DbConnection::Sqlite(connection)),
            WriterConnection::Simulated(connection) => match connection.database.outage() {
                None => Ok(DbConnection::Sqlite(connection)),
                Some(cause) => Err(DbError::Unavailable(cause)),
            },
            WriterConnection::Postgres {
                url,
                exclusive,
                client,
            } => {
                if client
                    .as_ref()
                    .is_none_or(postgres::PostgresClient::is_closed)
                {
                    *client = Some(connect_and_lock(url, *exclusive).await?);
                }
                client
                    .as_ref()
                    .map(DbConnection::Postgres)
                    .ok_or_else(|| DbError::Unavailable("no database connection".into()))
            }
        }
    }
}

/// The writer's connection holds the hub lock. It keeps every other hub off the database, or, in a cluster, every hub that is not
/// in a cluster.
async fn connect_and_lock(
    url: &chorus_wire::secret::Secret,
    exclusive: bool,
) -> std::result::Result<postgres::PostgresClient, DbError> {
    let client = postgres::PostgresClient::connect(url).await?;
    client.acquire_hub_lock(exclusive).await?;
    Ok(client)
}
