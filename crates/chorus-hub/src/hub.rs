//! The hub: its settings and the rooms behind it.

use crate::{Clock, Result};
use chorus_wire::secret::Secret;
use std::{path::PathBuf, sync::Arc, time::Duration};

/// What a hub is opened with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Holds the database file, the lock and the hub's own keys.
    pub data_dir: PathBuf,
    /// `postgres://…`; without it the database is a file in `data_dir`.
    pub database: Option<Secret>,
    /// The host part that short names stand for.
    pub host_name: String,
    pub operator_keys: Vec<Secret>,
    pub max_agents: Option<u64>,
    /// Webhooks may reach loopback and private addresses.
    pub allow_private_endpoints: bool,
    pub webhook_timeout: Duration,
    /// How long messages and activity are kept; forever without.
    pub retain: Option<Duration>,
    pub clock: Clock,
}

impl Options {
    /// The settings of a hub with nothing set, on `data_dir`.
    pub fn at(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            database: None,
            host_name: "chorus".into(),
            operator_keys: Vec::new(),
            max_agents: None,
            allow_private_endpoints: false,
            webhook_timeout: chorus_wire::limits::WEBHOOK_DEADLINE,
            retain: None,
            clock: Clock::system(),
        }
    }
}

/// Cheap to clone; every clone is the same hub.
#[derive(Clone)]
pub struct Hub(pub(crate) Arc<Rooms>);

pub(crate) struct Rooms {
    pub options: Options,
}

impl Hub {
    /// Opens the store (creating or migrating it), takes the lock on the data directory, starts the background work.
    pub async fn open(options: Options) -> std::result::Result<Self, StartError> {
        Ok(Self(Arc::new(Rooms { options })))
    }

    pub fn options(&self) -> &Options {
        &self.0.options
    }

    pub fn clock(&self) -> &Clock {
        &self.0.options.clock
    }

    /// Ends every open feed with a word to its reader. New ones are refused from here on.
    pub fn drain(&self) {
        todo!()
    }

    /// Commits what is queued and closes the store. After it every operation answers `ERR_UNAVAILABLE`.
    pub async fn close(&self) {
        todo!()
    }

    /// A consistent copy of a live SQLite hub.
    pub async fn backup(&self, _to: PathBuf) -> Result<()> {
        todo!()
    }
}

/// Why a hub did not start, said to whoever started it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("another hub is running on {0}; stop it or choose another --data-dir")]
    Locked(String),
    #[error("{what}: {cause}")]
    Store { what: String, cause: String },
}
