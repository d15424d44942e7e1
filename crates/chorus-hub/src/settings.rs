//! What a hub is opened with: its options, and the files of its connection to NATS.

use crate::clock::Clock;
use crate::memory_bounds::MemoryBounds;
use crate::simulation::SimulatedMachine;
use crate::telemetry::TraceExport;
use chorus_wire::credits::Credits;
use chorus_wire::limits;
use chorus_wire::secret::Secret;
use chorus_wire::usage::QuotaBounds;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What a hub is opened with.
#[derive(Clone, Debug)]
pub struct HubOptions {
    /// Holds the database file, the lock and the hub's own keys.
    pub data_dir: PathBuf,
    /// `postgres://…`; without it the database is a file in `data_dir`.
    pub database_url: Option<Secret>,
    /// `nats://…`, which hubs of a cluster need; without it no other hub writes to the database.
    pub bus_url: Option<Secret>,
    /// Credentials and certificates for `bus_url`.
    pub bus_files: BusFiles,
    /// The host part that short names stand for.
    pub host_name: String,
    /// Each is `label:KEY` or a key alone, of at least 20 characters.
    pub operator_keys: Vec<Secret>,
    pub max_agents: Option<u64>,
    /// What each owner may have.
    pub quotas: QuotaBounds,
    /// Webhooks may reach loopback and private addresses.
    pub allow_private_endpoints: bool,
    pub webhook_timeout: Duration,
    /// Name servers that resolve the hosts of webhooks; without any, those of the machine.
    pub name_servers: Vec<SocketAddr>,
    /// How long messages and activity are kept; without it they are never deleted.
    pub retain: Option<Duration>,
    /// The credits that every new owner is given.
    pub opening_grant: Credits,
    /// The URL by which clients reach the hub; callbacks contain it.
    pub public_url: String,
    /// The sealing key; without it a file in `data_dir`. All hubs of a cluster need the same one.
    pub seal_key_file: Option<PathBuf>,
    /// steps from agent to agent that may follow a person's message in a channel.
    pub agent_turns: u32,
    /// Opens a database file although it is damaged.
    pub accept_damage: bool,
    /// How much memory each part of the hub may hold.
    pub memory: MemoryBounds,
    /// The collector of traces; without it no span is made.
    pub trace_export: Option<TraceExport>,
    pub clock: Clock,
    /// Set by simulations only (D-110).
    pub simulated: Option<SimulatedMachine>,
}

impl HubOptions {
    /// The defaults of every option, on `data_dir`.
    pub fn for_data_dir(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            database_url: None,
            bus_url: None,
            bus_files: BusFiles::default(),
            host_name: "chorus".into(),
            operator_keys: Vec::new(),
            max_agents: None,
            quotas: QuotaBounds::default(),
            allow_private_endpoints: false,
            webhook_timeout: limits::WEBHOOK_DEADLINE,
            name_servers: Vec::new(),
            retain: None,
            opening_grant: Credits::from_hundredths(10_000),
            public_url: "http://127.0.0.1:3000".into(),
            seal_key_file: None,
            agent_turns: limits::AGENT_TURNS_DEFAULT,
            accept_damage: false,
            memory: MemoryBounds::default(),
            trace_export: None,
            clock: Clock::system(),
            simulated: None,
        }
    }
}

/// The files with which the hub authenticates to NATS, and NATS to the hub.
#[derive(Clone, Debug, Default)]
pub struct BusFiles {
    /// A NATS credentials file: a JWT and the seed that proves it.
    pub credentials: Option<PathBuf>,
    /// Trusted root certificates, PEM; without it those of the machine.
    pub root_certs: Option<PathBuf>,
    /// The hub's own certificate and its key, PEM.
    pub client_cert: Option<(PathBuf, PathBuf)>,
}
