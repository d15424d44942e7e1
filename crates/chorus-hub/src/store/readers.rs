//! Connections that only read, lent to one reader at a time on the blocking threads.

use super::value::Trouble;
use super::{DbError, Place, Tx, postgres, sqlite};
use crate::Result;
use chorus_wire::Error;
use futures_util::FutureExt;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Reads under way at once: SQLite reads are a core's work each, PostgreSQL's mostly wait.
const SQLITE_READERS: usize = 4;
const POSTGRES_READERS: usize = 16;

enum Connection {
    Sqlite(rusqlite::Connection),
    Postgres(postgres::Client),
}

pub(super) struct Readers {
    place: Place,
    idle: Arc<Mutex<Vec<Connection>>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    pub fn new(place: Place) -> std::result::Result<Self, DbError> {
        let (idle, turns) = match &place {
            // The first one is opened now, so that an unreadable file is known at start.
            Place::Sqlite(path) => (
                vec![Connection::Sqlite(sqlite::open_reader(path)?)],
                SQLITE_READERS,
            ),
            Place::Postgres(_) => (Vec::new(), POSTGRES_READERS),
        };
        Ok(Self {
            place,
            idle: Arc::new(Mutex::new(idle)),
            turns: Arc::new(Semaphore::new(turns)),
        })
    }

    pub async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: AsyncFnOnce(&Tx<'_>) -> Result<T> + Send + 'static,
    {
        // Behind a database that answers nobody the line is long: whoever would stand in it for longer than a read may take is
        // told so.
        let turn =
            tokio::time::timeout(postgres::UNANSWERED, self.turns.clone().acquire_owned()).await;
        let turn = turn.map_err(|_| Error::unavailable("too many reads wait for the database"))?;
        let turn = turn.map_err(Error::unavailable)?;
        let (place, idle) = (self.place.clone(), self.idle.clone());
        let task = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let lent = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let (answer, back) = match (place, lent) {
                (Place::Sqlite(_), Some(Connection::Sqlite(connection))) => {
                    on_sqlite(connection, work)
                }
                (Place::Sqlite(path), _) => on_sqlite(sqlite::open_reader(&path)?, work),
                (Place::Postgres(url), lent) => {
                    tokio::runtime::Handle::current().block_on(async {
                        let client = match lent {
                            Some(Connection::Postgres(client)) if !client.is_closed() => client,
                            Some(_) | None => postgres::Client::connect(&url).await?,
                        };
                        let answer = tokio::time::timeout(
                            postgres::UNANSWERED,
                            work(&Tx::Postgres(&client)),
                        )
                        .await;
                        let answer = answer.map_err(|_| {
                            DbError::Unavailable("the database did not answer".into())
                        })?;
                        // One that is gone is nobody's: the next reader makes its own.
                        let back = (client.trouble.take() != Some(Trouble::Gone))
                            .then_some(Connection::Postgres(client));
                        Ok::<_, DbError>((answer, back))
                    })?
                }
            };
            idle.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(back);
            answer
        });
        task.await.map_err(Error::internal)?
    }
}

/// SQLite never waits, so the work is done at its first poll. It sees one snapshot: whatever the writer commits meanwhile would
/// otherwise empty the connection's page cache between any two of its statements.
fn on_sqlite<T, F>(connection: rusqlite::Connection, work: F) -> (Result<T>, Option<Connection>)
where
    F: AsyncFnOnce(&Tx<'_>) -> Result<T>,
{
    let answer = match sqlite::execute(&connection, "begin", &[]) {
        Ok(_) => {
            let answer = work(&Tx::Sqlite(&connection)).now_or_never();
            answer.unwrap_or_else(|| {
                Err(Error::internal(
                    "a read on SQLite waited for something else",
                ))
            })
        }
        Err(error) => Err(error.into()),
    };
    // Nothing was written, so there is nothing to lose; a snapshot that stayed open would hold the checkpoint up.
    let _ = sqlite::execute(&connection, "rollback", &[]);
    (answer, Some(Connection::Sqlite(connection)))
}
