//! A connection to the file of a simulation (D-110). It outlives the hub that used it, with its prepared statements.

use super::{DbError, sqlite};
use crate::simulation::{ConnectionRole, SimulatedDatabase};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::ops::Deref;
use std::sync::Arc;

/// The page cache of a simulated database, which is in memory anyway.
const SIMULATED_CACHE_BYTES: u64 = 1 << 20;

/// SQLite's files without locks between processes: a simulation is one process, and a lock is a call of the system.
const PRIVATE_FILES: &str = "unix-excl";

/// A connection that is left to the next hub when it is dropped.
pub(super) struct SimulatedConnection {
    pub database: Arc<dyn SimulatedDatabase>,
    role: ConnectionRole,
    /// `None` only while it is dropped.
    connection: Option<Connection>,
}

impl SimulatedConnection {
    pub fn open(
        database: &Arc<dyn SimulatedDatabase>,
        role: ConnectionRole,
    ) -> Result<Self, DbError> {
        let connection = match database.idle_connections().take(role) {
            Some(connection) => connection,
            None => open_connection(&**database, role)?,
        };
        Ok(Self {
            database: database.clone(),
            role,
            connection: Some(connection),
        })
    }
}

fn open_connection(
    database: &dyn SimulatedDatabase,
    role: ConnectionRole,
) -> Result<Connection, DbError> {
    let connection =
        Connection::open_with_flags_and_vfs(database.file(), OpenFlags::default(), PRIVATE_FILES)
            .map_err(sqlite::classify_error)?;
    match role {
        ConnectionRole::Writer => sqlite::configure_writer(&connection, SIMULATED_CACHE_BYTES)?,
        ConnectionRole::Reader => sqlite::configure_reader(&connection, SIMULATED_CACHE_BYTES)?,
    }
    // Without it SQLite plans a query again for every new value of its limit. Tables of some dozens of rows need no better plan.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(sqlite::classify_error)?;
    Ok(connection)
}

impl Deref for SimulatedConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("it is not dropped yet")
    }
}

impl Drop for SimulatedConnection {
    /// The transaction of a hub that died is rolled back, as SQLite does when a connection is closed.
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let is_ended =
            connection.is_autocommit() || sqlite::execute(&connection, "rollback", &[]).is_ok();
        if is_ended {
            let idle = self.database.idle_connections();
            idle.put_back(self.role, connection);
        }
    }
}
