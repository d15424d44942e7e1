//! The database that one thread uses for history after history. Between two of them its rows become those of the template again,
//! while the connections and their prepared statements stay: making these again took most of the time of a history.

use crate::template::{Template, fast_dir};
use chorus_hub::simulation::IdleConnections;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// More statements than the oracle and the reset have.
const ORACLE_STATEMENTS: usize = 1_024;

pub struct ReusedDatabase {
    pub template: Arc<Template>,
    pub file: PathBuf,
    /// The oracle's own connection.
    pub database: Connection,
    /// What hubs of earlier histories left.
    pub idle_connections: Arc<IdleConnections>,
    /// One statement that empties a table, and one that fills it, for every table.
    reset_statements: Vec<String>,
    dir: tempfile::TempDir,
}

impl ReusedDatabase {
    pub fn new(template: &Arc<Template>) -> Self {
        let dir = fast_dir();
        let file = dir.path().join("history.db");
        std::fs::copy(&template.file, &file).unwrap();
        let database = open_privately(&file);
        database.set_prepared_statement_cache_capacity(ORACLE_STATEMENTS);
        database
            .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
            .unwrap();
        // Tables are emptied and filled one after another, in any order.
        database
            .execute_batch("pragma foreign_keys = off; pragma synchronous = off")
            .unwrap();
        let template_file = template.file.to_str().unwrap();
        database
            .execute("attach ?1 as template", [template_file])
            .unwrap();
        Self {
            template: template.clone(),
            reset_statements: list_reset_statements(&database),
            file,
            database,
            idle_connections: Arc::default(),
            dir,
        }
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Puts the rows of the template into every table. No hub uses the file.
    pub fn reset(&self) {
        self.database.execute_batch("begin immediate").unwrap();
        for sql in &self.reset_statements {
            self.database
                .prepare_cached(sql)
                .unwrap()
                .execute([])
                .unwrap();
        }
        self.database.execute_batch("commit").unwrap();
        // Otherwise the log would grow with every history.
        self.database
            .query_row("pragma main.wal_checkpoint(restart)", [], |_| Ok(()))
            .unwrap();
    }
}

/// Opens a file as hubs do in a simulation: a file that is locked in one way cannot be locked in another.
pub fn open_privately(file: &Path) -> Connection {
    Connection::open_with_flags_and_vfs(file, OpenFlags::default(), "unix-excl").unwrap()
}

fn list_reset_statements(database: &Connection) -> Vec<String> {
    let tables = "select name from template.sqlite_master where type = 'table'";
    let mut statement = database.prepare(tables).unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    names
        .map(Result::unwrap)
        .flat_map(|name: String| {
            [
                format!("delete from main.{name}"),
                format!("insert into main.{name} select * from template.{name}"),
            ]
        })
        .collect()
}
