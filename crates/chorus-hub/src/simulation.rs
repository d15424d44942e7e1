//! What a simulation puts in the place of the machine: the database server, the network and the bus (D-110). The rules, the
//! writer, the streams and the outbox are the real ones. A hub that serves clients has none of this.

use crate::bus::BusLink;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The machine of a simulated hub. Its writer and its readers run as local tasks of the runtime that opens it, so the whole hub
/// is one thread and repeats.
#[derive(Clone)]
pub struct SimulatedMachine {
    pub database: Arc<dyn SimulatedDatabase>,
    pub network: Arc<dyn SimulatedNetwork>,
    /// The bus of a hub in a cluster; `None` for a hub that runs alone.
    pub bus: Option<Arc<dyn BusLink>>,
}

impl fmt::Debug for SimulatedMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimulatedMachine")
    }
}

/// A SQLite file with the faults of a file, or with those of a database server that several hubs share.
pub trait SimulatedDatabase: Send + Sync + fmt::Debug {
    fn file(&self) -> &Path;
    /// Connections to the file that the hubs before left.
    fn idle_connections(&self) -> &IdleConnections;
    /// Other hubs write to it as well, so a group reads the head of the log again, as on PostgreSQL.
    fn is_shared(&self) -> bool;
    /// Held from the begin of a group to its end, like the advisory lock of PostgreSQL (D-07).
    fn group_lock(&self) -> Arc<tokio::sync::Mutex<()>>;
    /// Why the database cannot be reached now.
    fn outage(&self) -> Option<String>;
    /// What happens to the commit that is about to be sent.
    fn next_commit(&self) -> PlannedCommit;
    /// A commit was delayed until its hub gave up: whether it takes effect all the same.
    fn late_commit_applies(&self) -> bool;
}

/// Open connections to the file of a simulation that no hub uses. The next hub takes them: opening one reads the whole schema
/// and prepares every statement again, which took half of the time of a history. Only the store knows their type.
#[derive(Default)]
pub struct IdleConnections {
    writers: Mutex<Vec<Box<dyn Any + Send>>>,
    readers: Mutex<Vec<Box<dyn Any + Send>>>,
}

/// What a connection is for; a reader cannot write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionRole {
    Writer,
    Reader,
}

impl IdleConnections {
    fn list(&self, role: ConnectionRole) -> &Mutex<Vec<Box<dyn Any + Send>>> {
        match role {
            ConnectionRole::Writer => &self.writers,
            ConnectionRole::Reader => &self.readers,
        }
    }

    pub(crate) fn take<T: Any>(&self, role: ConnectionRole) -> Option<T> {
        let mut list = self
            .list(role)
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        list.pop()?.downcast().ok().map(|connection| *connection)
    }

    pub(crate) fn put_back(&self, role: ConnectionRole, connection: impl Any + Send) {
        self.list(role)
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Box::new(connection));
    }
}

/// What happens to a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedCommit {
    Commit,
    /// It takes effect after this pause.
    Delay(Duration),
    /// The database rolls the group back in favour of another transaction.
    RollBack,
    /// The connection is lost before the commit is sent.
    LoseConnection,
    /// The connection is lost after the commit is sent.
    LoseAnswer {
        applied: bool,
    },
    /// It is confirmed and has no effect, as on a disk that lies about its sync. No hub survives this: it is planted to see that
    /// the loss is noticed.
    Forget,
    /// The hub dies at this moment.
    Die {
        applied: bool,
    },
}

/// A post of a hub to an endpoint.
#[derive(Clone, Debug)]
pub struct SimulatedPost {
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// The answer of an endpoint: a status, and JSON.
#[derive(Clone, Debug)]
pub struct SimulatedAnswer {
    pub status: u16,
    pub body: Bytes,
}

/// How a post fails. One that is never answered does not complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkFault {
    /// No connection could be made.
    Unreachable,
    /// The connection broke before the answer was complete.
    Broken,
}

/// The network between hubs and endpoints.
pub trait SimulatedNetwork: Send + Sync {
    fn post(
        &self,
        post: SimulatedPost,
    ) -> BoxFuture<'static, Result<SimulatedAnswer, NetworkFault>>;
}
