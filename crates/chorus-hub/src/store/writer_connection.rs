//! The connection that writes: of a file, or of PostgreSQL and made anew when it broke.

use super::{DatabaseUrl, DbConnection, DbError, postgres, sqlite};

/// The engine that the writer thread owns.
pub(super) enum WriterConnection {
    Sqlite(rusqlite::Connection),
    Postgres {
        url: chorus_wire::secret::Secret,
        exclusive: bool,
        client: Option<postgres::PostgresClient>,
    },
}

impl WriterConnection {
    pub async fn open(
        database_url: &DatabaseUrl,
        exclusive: bool,
    ) -> std::result::Result<Self, DbError> {
        Ok(match database_url {
            DatabaseUrl::Sqlite(path) => WriterConnection::Sqlite(sqlite::open_writer(path)?),
            DatabaseUrl::Postgres(url) => WriterConnection::Postgres {
                url: url.clone(),
                exclusive,
                client: Some(connect_and_lock(url, exclusive).await?),
            },
        })
    }

    /// Drops a connection that no longer answers.
    pub fn disconnect(&mut self) {
        match self {
            WriterConnection::Sqlite(_) => {}
            WriterConnection::Postgres { client, .. } => *client = None,
        }
    }

    /// The connection, made anew if the last one broke.
    pub async fn ensure_connected(&mut self) -> std::result::Result<DbConnection<'_>, DbError> {
        match self {
            WriterConnection::Sqlite(connection) => Ok(DbConnection::Sqlite(connection)),
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

/// The writer's connection holds the lock that keeps a second hub off the database, or that lets only such hubs in which
/// share it too.
async fn connect_and_lock(
    url: &chorus_wire::secret::Secret,
    exclusive: bool,
) -> std::result::Result<postgres::PostgresClient, DbError> {
    let client = postgres::PostgresClient::connect(url).await?;
    client.acquire_hub_lock(exclusive).await?;
    Ok(client)
}
