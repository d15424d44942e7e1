//! The connection that writes: of a file, or of PostgreSQL and made anew when it broke.

use super::{DbError, Place, Tx, postgres, sqlite};

/// The engine that the writer thread owns.
pub(super) enum Engine {
    Sqlite(rusqlite::Connection),
    Postgres {
        url: chorus_wire::secret::Secret,
        alone: bool,
        client: Option<postgres::Client>,
    },
}

impl Engine {
    pub async fn open(place: &Place, alone: bool) -> std::result::Result<Self, DbError> {
        Ok(match place {
            Place::Sqlite(path) => Engine::Sqlite(sqlite::open_writer(path)?),
            Place::Postgres(url) => Engine::Postgres {
                url: url.clone(),
                alone,
                client: Some(connect(url, alone).await?),
            },
        })
    }

    /// Drops a connection that no longer answers.
    pub fn hang_up(&mut self) {
        match self {
            Engine::Sqlite(_) => {}
            Engine::Postgres { client, .. } => *client = None,
        }
    }

    /// The connection, made anew if the last one broke.
    pub async fn tx(&mut self) -> std::result::Result<Tx<'_>, DbError> {
        match self {
            Engine::Sqlite(connection) => Ok(Tx::Sqlite(connection)),
            Engine::Postgres { url, alone, client } => {
                if client.as_ref().is_none_or(postgres::Client::is_closed) {
                    *client = Some(connect(url, *alone).await?);
                }
                client
                    .as_ref()
                    .map(Tx::Postgres)
                    .ok_or_else(|| DbError::Unavailable("no database connection".into()))
            }
        }
    }
}

/// The writer's connection holds the lock that keeps a second hub off the database, or that lets only such hubs in which
/// share it too.
async fn connect(
    url: &chorus_wire::secret::Secret,
    alone: bool,
) -> std::result::Result<postgres::Client, DbError> {
    let client = postgres::Client::connect(url).await?;
    client.hold(alone).await?;
    Ok(client)
}
