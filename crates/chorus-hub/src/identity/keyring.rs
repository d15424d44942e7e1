//! From a credential to a principal, and from a name to an agent: looked up once, remembered until it changes.

use super::{Agent, Principal};
use crate::store::{Notice, principals, sessions};
use crate::{Hub, Result};
use chorus_wire::{Code, Error, secret::Secret};
use quick_cache::sync::Cache;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// Agents kept in memory by key and by name; beyond it the least used are looked up again.
const REMEMBERED: usize = 100_000;

/// How a secret is stored and compared: keys are 128 random bits, so one round of SHA-256 is enough to make a stolen table useless.
pub(crate) fn hash(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// What has been looked up. An entry is removed after the commit that changes it; a look-up that was under way meanwhile
/// finds its place taken away and is not remembered, so that nothing stale stays.
pub(crate) struct Keyring {
    keys: Cache<[u8; 32], Arc<Agent>>,
    names: Cache<String, Arc<Agent>>,
    operators: Vec<[u8; 32]>,
}

impl Keyring {
    pub fn new(operators: &[Secret]) -> Self {
        let operators = operators.iter().map(|key| hash(key.expose())).collect();
        Self {
            keys: Cache::new(REMEMBERED),
            names: Cache::new(REMEMBERED),
            operators,
        }
    }

    /// Compares with every operator key in constant time.
    fn operator(&self, hash: &[u8; 32]) -> Option<u64> {
        let known = self
            .operators
            .iter()
            .fold(false, |known, other| known | bool::from(other.ct_eq(hash)));
        known.then(|| {
            hash.iter()
                .take(8)
                .fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
        })
    }

    async fn by_key(&self, hub: &Hub, hash: [u8; 32]) -> Result<Option<Arc<Agent>>> {
        self.look_again(hub);
        let place = match self.keys.get_value_or_guard_async(&hash).await {
            Ok(agent) => return Ok(Some(agent)),
            Err(place) => place,
        };
        let found = hub
            .store()
            .read(async move |tx| Ok(principals::by_key(tx, &hash).await?))
            .await?;
        // The index found it by equality; this comparison takes the same time wherever two hashes differ.
        let found = found
            .filter(|agent| {
                agent
                    .key_hash
                    .is_some_and(|known| bool::from(known.ct_eq(&hash)))
            })
            .map(Arc::new);
        if let Some(agent) = &found {
            let _ = place.insert(agent.clone());
        }
        Ok(found)
    }

    pub async fn by_name(&self, hub: &Hub, name: String) -> Result<Option<Arc<Agent>>> {
        self.look_again(hub);
        let place = match self.names.get_value_or_guard_async(&name).await {
            Ok(agent) => return Ok(Some(agent)),
            Err(place) => place,
        };
        let found = hub
            .store()
            .read(async move |tx| Ok(principals::by_name(tx, &name).await?))
            .await?
            .map(Arc::new);
        if let Some(agent) = &found {
            let _ = place.insert(agent.clone());
        }
        Ok(found)
    }

    /// Whether a look-up of this key costs nothing.
    fn remembers(&self, hash: &[u8; 32]) -> bool {
        self.operator(hash).is_some() || self.keys.peek(hash).is_some()
    }

    /// Whether the key that this agent came with is still its key.
    pub async fn is_current(&self, hub: &Hub, agent: &Agent) -> Result<bool> {
        let Some(hash) = agent.key_hash else {
            return Ok(false);
        };
        Ok(self
            .by_key(hub, hash)
            .await?
            .is_some_and(|known| known.id == agent.id))
    }

    /// A hub that has not heard for too long what others changed remembers nothing.
    fn look_again(&self, hub: &Hub) {
        if !hub.bus().is_current() {
            self.forget_all();
        }
    }

    pub fn forget_all(&self) {
        self.keys.clear();
        self.names.clear();
    }

    /// What came of a write that takes keys back. A commit that failed may have taken effect all the same, and then nobody else
    /// says what is over.
    pub fn sure<T>(&self, done: Result<T>) -> Result<T> {
        if done.as_ref().is_err_and(|error| error.code.status() >= 500) {
            self.forget_all();
        }
        done
    }

    /// The agent changed or is gone: what was known of it is forgotten.
    pub fn forget(&self, hub: &Hub, agent: &Agent) {
        self.heed(&Notice::of(agent, &hub.options().host_name));
    }

    /// Forgets what the notice speaks of.
    pub fn heed(&self, notice: &Notice) {
        notice
            .keys
            .iter()
            .for_each(|hash| drop(self.keys.remove(hash)));
        notice
            .names
            .iter()
            .for_each(|name| drop(self.names.remove(name)));
    }
}

/// Whether asking whose key this is needs the store: only then can a stranger's guess cost something.
pub fn needs_look_up(hub: &Hub, key: &str) -> bool {
    is_agents(key) && !hub.keyring().remembers(&hash(key))
}

/// Whatever is not shaped like an agent's key needs no look-up.
fn is_agents(key: &str) -> bool {
    key.starts_with("ca_") && key.len() == 35
}

/// No credential is `Anyone`; one that is not ours is an error (TRN-24).
pub async fn authenticate(hub: &Hub, key: Option<&str>) -> Result<Principal> {
    let Some(key) = key else {
        return Ok(Principal::Anyone);
    };
    let hash = hash(key);
    if let Some(fingerprint) = hub.keyring().operator(&hash) {
        return Ok(Principal::Operator(fingerprint));
    }
    if !is_agents(key) {
        return Err(Code::Unauthorized.into());
    }
    let agent = hub
        .keyring()
        .by_key(hub, hash)
        .await?
        .ok_or(Code::Unauthorized)?;
    // whoever shows a key is there.
    hub.heard(agent.id).await;
    Ok(Principal::Agent(agent))
}

/// Spends a single-use `cs_` token.
pub async fn authenticate_session(hub: &Hub, token: &str) -> Result<Principal> {
    let refused = || {
        Error::new(
            Code::Unauthorized,
            "the session token is unknown, spent or expired",
        )
    };
    if !token.starts_with("cs_") {
        return Err(refused());
    }
    let hash = hash(token);
    let agent = hub
        .store()
        .write(async move |txn| {
            let now = txn.now();
            match sessions::spend(&txn.tx, &hash, now).await? {
                Some(id) => Ok(principals::by_id(&txn.tx, id).await?),
                None => Ok(None),
            }
        })
        .await?;
    let agent = agent.ok_or_else(refused)?;
    hub.heard(agent.id).await;
    Ok(Principal::Agent(Arc::new(agent)))
}
