//! The key cache: from a key to a principal and from a name to an agent, cached until a commit changes them.

use super::{Identity, Principal};
use crate::Result;
use crate::store::{Agent, CacheInvalidation, Store, principals, session_tokens};
use chorus_wire::{Error, ErrorCode, secret::Secret};
use quick_cache::{Weighter, sync::Cache};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// Max bytes of the agents cached by key, and as many by name: a card has up to 8 KiB, so a number of agents would bound
/// nothing. Beyond it the least used are looked up again.
const AGENT_CACHE_BYTES: u64 = 48 * 1024 * 1024;
/// How many agents that is expected to be; the cache sizes its tables by it.
const AGENTS_EXPECTED: usize = 100_000;

/// Weighs a cached agent by its memory.
#[derive(Clone)]
struct AgentWeighter;

impl<K: CacheKey> Weighter<K, Arc<Agent>> for AgentWeighter {
    fn weight(&self, key: &K, agent: &Arc<Agent>) -> u64 {
        let texts = [
            Some(&*agent.agent_id),
            agent.handle.as_deref(),
            Some(&*agent.owner_name),
            agent.card.as_deref(),
            agent.endpoint.as_deref(),
            agent.market.as_deref(),
        ];
        let text_bytes: usize = texts.into_iter().flatten().map(str::len).sum();
        (size_of::<Agent>() + key.bytes() + text_bytes) as u64
    }
}

/// The key of a cache, which takes memory too.
trait CacheKey {
    fn bytes(&self) -> usize;
}

impl CacheKey for [u8; 32] {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl CacheKey for String {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.len()
    }
}

/// How a secret is stored and compared: keys are 128 random bits, so one round of SHA-256 is enough to make a stolen table
/// useless.
pub(crate) fn hash_secret(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// Agents by key and by name. An entry is removed after the commit that changes it. A look-up that started before loses its
/// placeholder then and is not cached, so that no stale entry stays.
pub(crate) struct KeyCache {
    agents_by_key: Cache<[u8; 32], Arc<Agent>, AgentWeighter>,
    agents_by_name: Cache<String, Arc<Agent>, AgentWeighter>,
    operator_hashes: Vec<[u8; 32]>,
}

impl KeyCache {
    pub fn new(operator_keys: &[Secret]) -> Self {
        let operator_hashes = operator_keys
            .iter()
            .map(|key| hash_secret(key.expose()))
            .collect();
        Self {
            agents_by_key: Cache::with_weighter(AGENTS_EXPECTED, AGENT_CACHE_BYTES, AgentWeighter),
            agents_by_name: Cache::with_weighter(AGENTS_EXPECTED, AGENT_CACHE_BYTES, AgentWeighter),
            operator_hashes,
        }
    }

    /// Compares with every operator key in constant time.
    fn operator_fingerprint(&self, key_hash: &[u8; 32]) -> Option<u64> {
        let is_known = self.operator_hashes.iter().fold(false, |found, other| {
            found | bool::from(other.ct_eq(key_hash))
        });
        is_known.then(|| {
            key_hash
                .iter()
                .take(8)
                .fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
        })
    }

    async fn find_by_key(&self, store: &Store, key_hash: [u8; 32]) -> Result<Option<Arc<Agent>>> {
        self.clear_if_stale(store);
        let guard = match self.agents_by_key.get_value_or_guard_async(&key_hash).await {
            Ok(agent) => return Ok(Some(agent)),
            Err(guard) => guard,
        };
        let found = store
            .read(async move |tx| Ok(principals::find_agent_by_key_hash(tx, &key_hash).await?))
            .await?;
        // The index compares by equality; this comparison takes the same time wherever two hashes differ.
        let found = found
            .filter(|agent| {
                agent
                    .key_hash
                    .is_some_and(|known| bool::from(known.ct_eq(&key_hash)))
            })
            .map(Arc::new);
        if let Some(agent) = &found {
            let _ = guard.insert(agent.clone());
        }
        Ok(found)
    }

    pub async fn find_by_name(&self, store: &Store, name: String) -> Result<Option<Arc<Agent>>> {
        self.clear_if_stale(store);
        let guard = match self.agents_by_name.get_value_or_guard_async(&name).await {
            Ok(agent) => return Ok(Some(agent)),
            Err(guard) => guard,
        };
        let found = store
            .read(async move |tx| Ok(principals::find_agent_by_name(tx, &name).await?))
            .await?
            .map(Arc::new);
        if let Some(agent) = &found {
            let _ = guard.insert(agent.clone());
        }
        Ok(found)
    }

    /// Whether a look-up of this key costs nothing.
    fn is_cached(&self, key_hash: &[u8; 32]) -> bool {
        self.operator_fingerprint(key_hash).is_some() || self.agents_by_key.peek(key_hash).is_some()
    }

    /// Whether the key with which this agent authenticated is still its key.
    pub async fn is_current_key(&self, store: &Store, agent: &Agent) -> Result<bool> {
        let Some(key_hash) = agent.key_hash else {
            return Ok(false);
        };
        Ok(self
            .find_by_key(store, key_hash)
            .await?
            .is_some_and(|known| known.id == agent.id))
    }

    /// D-81: a hub that has not read the log for too long may have missed invalidations.
    fn clear_if_stale(&self, store: &Store) {
        if !store.is_caught_up() {
            self.clear();
        }
    }

    pub fn clear(&self) {
        self.agents_by_key.clear();
        self.agents_by_name.clear();
    }

    /// Clears the cache when the outcome of a write that revokes keys is unknown: a failed commit may have taken effect, and
    /// then no invalidation follows.
    pub fn clear_if_uncertain<T>(&self, result: Result<T>) -> Result<T> {
        if result
            .as_ref()
            .is_err_and(|error| error.code.status() >= 500)
        {
            self.clear();
        }
        result
    }

    pub fn invalidate(&self, invalidation: &CacheInvalidation) {
        invalidation
            .keys
            .iter()
            .for_each(|hash| drop(self.agents_by_key.remove(hash)));
        invalidation
            .names
            .iter()
            .for_each(|name| drop(self.agents_by_name.remove(name)));
    }
}

/// Whether authenticating this key needs the store: only then does a guessed key cost a query.
pub fn needs_lookup(identity: &Identity, key: &str) -> bool {
    is_agent_key(key) && !identity.key_cache().is_cached(&hash_secret(key))
}

/// The form of an agent's key; any other text needs no query.
fn is_agent_key(key: &str) -> bool {
    key.starts_with("ca_") && key.len() == 35
}

/// Without a credential the principal is anonymous; an unknown one is an error (TRN-24).
pub async fn authenticate(identity: &Identity, key: Option<&str>) -> Result<Principal> {
    let Some(key) = key else {
        return Ok(Principal::Anonymous);
    };
    let key_hash = hash_secret(key);
    if let Some(fingerprint) = identity.key_cache().operator_fingerprint(&key_hash) {
        return Ok(Principal::Operator(fingerprint));
    }
    if !is_agent_key(key) {
        return Err(ErrorCode::Unauthorized.into());
    }
    let agent = identity
        .key_cache()
        .find_by_key(&identity.store, key_hash)
        .await?
        .ok_or(ErrorCode::Unauthorized)?;
    // an agent that authenticates is online.
    identity.record_agent_seen_everywhere(agent.id).await;
    Ok(Principal::Agent(agent))
}

/// Redeems a single-use `cs_` token.
pub async fn authenticate_session(identity: &Identity, token: &str) -> Result<Principal> {
    let token_refused = || {
        Error::new(
            ErrorCode::Unauthorized,
            "the session token is unknown, spent or expired",
        )
    };
    if !token.starts_with("cs_") {
        return Err(token_refused());
    }
    let token_hash = hash_secret(token);
    let agent = identity
        .store
        .write(async move |txn| {
            let now = txn.now();
            match session_tokens::redeem_session_token(&txn.tx, &token_hash, now).await? {
                Some(id) => Ok(principals::find_agent(&txn.tx, id).await?),
                None => Ok(None),
            }
        })
        .await?;
    let agent = agent.ok_or_else(token_refused)?;
    identity.record_agent_seen_everywhere(agent.id).await;
    Ok(Principal::Agent(Arc::new(agent)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{AgentId, OwnerId};
    use chorus_wire::time::UnixMicros;

    //
    #[test]
    fn cached_agents_are_bounded_by_their_bytes() {
        let cache = KeyCache::new(&[]);
        let card_bytes = 8 * 1024;
        for number in 0..20_000_i64 {
            let mut key_hash = [0; 32];
            key_hash[..8].copy_from_slice(&number.to_be_bytes());
            let agent = Arc::new(Agent {
                id: AgentId(number),
                agent_id: format!("agent-{number}@chorus").into(),
                handle: None,
                owner: OwnerId(number),
                owner_name: String::new(),
                card: Some("x".repeat(card_bytes).into()),
                endpoint: None,
                market: None,
                key_hash: Some(key_hash),
                registered_at: UnixMicros(0),
            });
            cache.agents_by_key.insert(key_hash, agent.clone());
            cache
                .agents_by_name
                .insert(agent.agent_id.to_string(), agent);
        }
        let most = AGENT_CACHE_BYTES as usize / card_bytes;
        for cached in [cache.agents_by_key.len(), cache.agents_by_name.len()] {
            assert!((1..=most).contains(&cached), "{cached}");
        }
    }
}
