//! The database that every history begins with: a few agents, their owners, a channel. It is made once, and copied.

use crate::database::DatabaseServer;
use crate::network::Network;
use crate::node::{SimulatedEnvironment, SimulatedHub};
use crate::seeded_random::SeededRandom;
use crate::stage::open_privately;
use chorus_hub::channel::{manage, members};
use chorus_hub::{Clock, Hub, Principal, identity, lifecycle, random};
use chorus_wire::channel::channels::{NewChannel, NewChannelMember};
use chorus_wire::registration::RegistrationRequest;
use chorus_wire::time::UnixMicros;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub const EPOCH: UnixMicros = UnixMicros(1_774_000_000_000_000);
/// Agents that read their inbox.
pub const READERS: [usize; 4] = [0, 1, 2, 3];
/// Has an endpoint for messages.
pub const HOOK: usize = 4;
/// Has an endpoint for jobs.
pub const WORKER: usize = 5;
/// Gets its jobs by its inbox.
pub const INBOX_WORKER: usize = 3;
/// Claim jobs on the board.
pub const BOARD_WORKERS: [usize; 3] = [1, 2, 3];
pub const AGENTS: usize = 6;
pub const CHANNEL_MEMBERS: [&str; 2] = ["/member/1", "/member/2"];

pub struct Template {
    /// Holds the files.
    _dir: tempfile::TempDir,
    pub file: PathBuf,
    pub seal_key_file: PathBuf,
    /// The key of each agent.
    pub keys: Vec<String>,
    pub channel: String,
    pub newest_seq: u64,
}

/// In memory where there is such a place, because a history writes much and keeps nothing.
pub fn fast_dir() -> tempfile::TempDir {
    let shm = PathBuf::from("/dev/shm");
    let builder = tempfile::Builder::new()
        .prefix("chorus-simulation-")
        .to_owned();
    builder
        .tempdir_in(&shm)
        .or_else(|_| builder.tempdir())
        .unwrap()
}

pub fn agent_name(agent: usize) -> String {
    format!("a{agent}@chorus")
}

pub fn owner_name(agent: usize) -> String {
    format!("o{agent}")
}

impl Template {
    pub fn build() -> Self {
        random::seed_this_thread(Some(0));
        let dir = fast_dir();
        let file = dir.path().join("template.db");
        let seal_key_file = dir.path().join("seal.key");
        let clock = Clock::manual_at(EPOCH);
        let server = DatabaseServer::new(
            file.clone(),
            Arc::default(),
            false,
            clock.clone(),
            SeededRandom::new(0, 1),
            0.0,
        );
        let environment = SimulatedEnvironment {
            dir: dir.path().to_owned(),
            seal_key_file: seal_key_file.clone(),
            clock,
            server: Arc::new(server),
            network: Arc::new(Network::new(SeededRandom::new(0, 2), 0.0)),
            bus: None,
        };
        make_seal_key(&seal_key_file);
        let node = SimulatedHub::start(&environment, 0);
        while node.hub().is_none() {
            assert_eq!(node.start_error(), None);
            node.tick(Duration::from_millis(10));
        }
        let hub = node.hub().unwrap();
        let (keys, channel) = node.run(populate(&hub));
        node.run(hub.close());
        // With all connections, so that the last one puts everything into the one file.
        drop((hub, node, environment));
        let newest_seq = checkpoint(&file);
        Self {
            _dir: dir,
            file,
            seal_key_file,
            keys,
            channel,
            newest_seq,
        }
    }
}

/// A sealing key is 32 octets in hex; that of a simulation protects nothing.
fn make_seal_key(file: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(file, "07".repeat(32)).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// Puts everything into the one file that is copied.
fn checkpoint(file: &std::path::Path) -> u64 {
    let connection = open_privately(file);
    connection
        .query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(()))
        .unwrap();
    connection
        .query_row("select max(seq) from log", [], |row| row.get::<_, i64>(0))
        .unwrap() as u64
}

async fn populate(hub: &Hub) -> (Vec<String>, String) {
    let mut keys = Vec::new();
    for agent in 0..AGENTS {
        let mut body = json!({
            "agent_id": agent_name(agent),
            "agent_card": {"card_version": "0.3", "user_culture": "en", "supported_languages": ["en"]},
            "agent_name": format!("agent {agent}"),
            "owner_id": owner_name(agent),
            "skills": list_skills(agent),
        });
        if agent == HOOK {
            body["endpoint"] = json!("http://10.0.0.4/hook/4");
        }
        if agent == WORKER {
            body["api_endpoint"] = json!("http://10.0.0.5/work/5");
        }
        let request = RegistrationRequest::parse(body.to_string().as_bytes()).unwrap();
        let registered =
            lifecycle::register_agent(&Principal::Anonymous, hub, hub.frames(), request, None)
                .await;
        let (_, reply) = registered.unwrap();
        let reply = serde_json::to_value(&reply).unwrap();
        keys.push(find_key(&reply).expect("a registration answers with a key"));
    }
    let owner = identity::authenticate(hub.identity(), Some(&keys[0]), None)
        .await
        .unwrap();
    let new = NewChannel::parse(br#"{"name": "work"}"#).unwrap();
    let channel = manage::create_channel(&owner, hub, new).await.unwrap().id;
    for path in CHANNEL_MEMBERS {
        let name = format!("m{}", path.rsplit('/').next().unwrap());
        let member =
            json!({"name": name, "connection": format!("http://10.0.1.1{path}"), "deliver": "all"});
        let member = NewChannelMember::parse(member.to_string().as_bytes()).unwrap();
        members::add_member(&owner, hub, &channel, member)
            .await
            .unwrap();
    }
    (keys, channel)
}

fn list_skills(agent: usize) -> serde_json::Value {
    let mut skills = Vec::new();
    if agent == WORKER {
        skills.push(json!({"skill_name": "sum", "cost_per_call": 0.10}));
    }
    if agent == INBOX_WORKER {
        skills.push(json!({"skill_name": "read", "cost_per_call": 0.20}));
    }
    if BOARD_WORKERS.contains(&agent) {
        skills.push(json!({"skill_name": "paint", "cost_per_call": 0.30}));
    }
    skills.into()
}

/// The first text that has the form of an agent's key.
fn find_key(reply: &serde_json::Value) -> Option<String> {
    match reply {
        serde_json::Value::String(text) if text.starts_with("ca_") => Some(text.clone()),
        serde_json::Value::Object(fields) => fields.values().find_map(find_key),
        serde_json::Value::Null
        | serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_)
        | serde_json::Value::Array(_) => None,
    }
}
