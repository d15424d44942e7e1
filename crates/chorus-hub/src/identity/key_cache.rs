//! The key cache: from a key to a principal and from a name to an agent, cached until a commit changes them.

use super::agent_caller::{CallerKey, DAY_MICROS};
use super::operator_caller::OperatorKey;
use super::{AgentCaller, Identity, OperatorCaller, Principal, console_sign_in};
use crate::Result;
use crate::store::{
    Agent, CacheInvalidation, DbConnection, DbError, EndedKey, IdempotencyKey, Store, agent_keys,
    key_rotations, principals,
    session_tokens::{self, RedeemedToken},
};
use chorus_wire::time::UnixMicros;
use chorus_wire::{Error, ErrorCode};
use quick_cache::{Weighter, sync::Cache};
use sha2::{Digest, Sha256};
use std::net::IpAddr;
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

impl<K: CacheKey> Weighter<K, AgentCaller> for AgentWeighter {
    fn weight(&self, key: &K, caller: &AgentCaller) -> u64 {
        self.weight(key, &caller.agent) + size_of::<CallerKey>() as u64
    }
}

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
    agents_by_key: Cache<[u8; 32], AgentCaller, AgentWeighter>,
    agents_by_name: Cache<String, Arc<Agent>, AgentWeighter>,
    operator_keys: Vec<OperatorKey>,
}

impl KeyCache {
    pub fn new(operator_keys: Vec<OperatorKey>) -> Self {
        Self {
            agents_by_key: Cache::with_weighter(AGENTS_EXPECTED, AGENT_CACHE_BYTES, AgentWeighter),
            agents_by_name: Cache::with_weighter(AGENTS_EXPECTED, AGENT_CACHE_BYTES, AgentWeighter),
            operator_keys,
        }
    }

    /// Compares with every operator key in constant time.
    fn find_operator_key(&self, key_hash: &[u8; 32]) -> Option<&OperatorKey> {
        self.operator_keys.iter().fold(None, |found, known| {
            let is_equal = bool::from(known.hash.ct_eq(key_hash));
            if is_equal { Some(known) } else { found }
        })
    }

    /// The operator key of the configuration that a console session was made with.
    pub fn find_operator_by_fingerprint(&self, fingerprint: u64) -> Option<&OperatorKey> {
        let mut keys = self.operator_keys.iter();
        keys.find(|key| key.fingerprint() == fingerprint)
    }

    /// The first operator key of the configuration.
    pub fn first_operator_key(&self) -> Option<&OperatorKey> {
        self.operator_keys.first()
    }

    /// The agent whose key this is, if the key is valid now. Finding the key that a rotation made counts as its first use.
    pub async fn find_by_key(
        &self,
        store: &Store,
        key_hash: [u8; 32],
        now: UnixMicros,
    ) -> Result<Option<AgentCaller>> {
        self.clear_if_stale(store);
        let is_live = |caller: &AgentCaller| !caller.key.is_expired(now);
        let guard = match self.agents_by_key.get_value_or_guard_async(&key_hash).await {
            Ok(caller) => return Ok(Some(caller).filter(is_live)),
            Err(guard) => guard,
        };
        let (mut found, is_unused) = store
            .read(async move |tx| {
                let found = find_caller(tx, &key_hash).await?;
                Ok((found, key_rotations::is_unused_key(tx, &key_hash).await?))
            })
            .await?;
        if is_unused {
            found = store
                .write(async move |txn| {
                    key_rotations::confirm_rotation(&txn.tx, &key_hash).await?;
                    Ok(find_caller(&txn.tx, &key_hash).await?)
                })
                .await?;
        }
        // The index compares by equality; this comparison takes the same time wherever two hashes differ.
        let found = found.filter(|caller| bool::from(caller.key.hash.ct_eq(&key_hash)));
        if let Some(caller) = &found {
            let _ = guard.insert(caller.clone());
        }
        Ok(found.filter(is_live))
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
        self.find_operator_key(key_hash).is_some() || self.agents_by_key.peek(key_hash).is_some()
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
        self.forget_keys(&invalidation.ended_keys);
        invalidation
            .names
            .iter()
            .for_each(|name| drop(self.agents_by_name.remove(name)));
    }

    /// These keys have ended.
    pub fn forget_keys(&self, ended_keys: &[EndedKey]) {
        ended_keys
            .iter()
            .for_each(|ended| drop(self.agents_by_key.remove(&ended.hash)));
    }
}

/// Looks a key up among those of registrations, then among further keys.
async fn find_caller(
    tx: &DbConnection<'_>,
    key_hash: &[u8; 32],
) -> std::result::Result<Option<AgentCaller>, DbError> {
    if let Some(agent) = principals::find_agent_by_key_hash(tx, key_hash).await? {
        return Ok(agent.key_hash.map(|hash| AgentCaller {
            key: CallerKey::of_registration(hash),
            agent: Arc::new(agent),
        }));
    }
    let Some(row) = agent_keys::find_key_by_hash(tx, key_hash).await? else {
        return Ok(None);
    };
    let agent = principals::find_agent(tx, row.agent).await?;
    Ok(agent.map(|agent| AgentCaller {
        key: CallerKey::from(&row),
        agent: Arc::new(agent),
    }))
}

/// Whether authenticating this key needs the store: only then does a guessed key cost a query.
pub fn needs_lookup(identity: &Identity, key: &str) -> bool {
    console_sign_in::is_sign_in_credential(key)
        || is_agent_key(key) && !identity.key_cache().is_cached(&hash_secret(key))
}

/// The form of an agent's key; any other text needs no query.
fn is_agent_key(key: &str) -> bool {
    key.starts_with("ca_") && key.len() == 35
}

/// Without a credential the principal is anonymous; an unknown one is an error (TRN-24). The address is that of the client.
pub async fn authenticate(
    identity: &Identity,
    key: Option<&str>,
    address: Option<IpAddr>,
) -> Result<Principal> {
    let Some(key) = key else {
        return Ok(Principal::Anonymous);
    };
    let key_hash = hash_secret(key);
    if let Some(operator_key) = identity.key_cache().find_operator_key(&key_hash) {
        return Ok(Principal::Operator(OperatorCaller::new(
            operator_key,
            address,
        )));
    }
    if console_sign_in::is_sign_in_credential(key) {
        return console_sign_in::authenticate_sign_in(identity, key, address).await;
    }
    if !is_agent_key(key) {
        return Err(ErrorCode::Unauthorized.into());
    }
    let now = identity.clock.now();
    let caller = identity
        .key_cache()
        .find_by_key(&identity.store, key_hash, now)
        .await?
        .ok_or(ErrorCode::Unauthorized)?;
    record_key_use(identity, &caller.key, now).await;
    // an agent that authenticates is online.
    identity.record_agent_seen_everywhere(caller.id).await;
    Ok(Principal::Agent(caller))
}

/// Stores the day of a further key's last use, once a day. The request does not depend on it.
async fn record_key_use(identity: &Identity, key: &CallerKey, now: UnixMicros) {
    let day = now.0.div_euclid(DAY_MICROS);
    let Some(id) = key.note_use(day) else { return };
    let recorded = identity
        .store
        .write(async move |txn| Ok(agent_keys::record_use(&txn.tx, &id, day).await?))
        .await;
    if let Err(error) = recorded {
        tracing::warn!(%error, cause = error.cause, "the use of a key was not recorded");
    }
}

/// The agent whose key was replaced by this request before: the client may not have got the answer, and repeats it.
/// The principal is good for that repetition only, which checks it again.
pub async fn authenticate_replaced_key(
    identity: &Identity,
    key: &str,
    request: &IdempotencyKey,
) -> Result<Principal> {
    let key_hash = hash_secret(key);
    let request = request.clone();
    let agent = identity
        .store
        .read(async move |tx| {
            let rotation = key_rotations::find_rotation_asked_by(tx, &key_hash).await?;
            let Some(rotation) = rotation.filter(|known| known.request.key == request.key) else {
                return Ok(None);
            };
            // Only the same request: a dead key must not be good for another registration.
            if rotation.request.fingerprint != request.fingerprint {
                return Err(ErrorCode::IdempotencyConflict.into());
            }
            Ok(principals::find_agent(tx, rotation.agent).await?)
        })
        .await?
        .ok_or(ErrorCode::Unauthorized)?;
    Ok(Principal::Agent(AgentCaller {
        agent: Arc::new(agent),
        key: CallerKey::of_registration(key_hash),
    }))
}

/// Redeems a single-use `cs_` token.
pub(super) async fn authenticate_session(identity: &Identity, token: &str) -> Result<Principal> {
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
    let caller = identity
        .store
        .write(async move |txn| {
            let now = txn.now();
            let Some(token) =
                session_tokens::redeem_session_token(&txn.tx, &token_hash, now).await?
            else {
                return Ok(None);
            };
            Ok(find_token_caller(&txn.tx, &token, now).await?)
        })
        .await?;
    let caller = caller.ok_or_else(token_refused)?;
    identity.record_agent_seen_everywhere(caller.id).await;
    Ok(Principal::Agent(caller))
}

/// The agent that a token stands for, with the key that made it: the token has the scopes of that key, and ends with it.
pub(super) async fn find_token_caller(
    tx: &DbConnection<'_>,
    token: &RedeemedToken,
    now: UnixMicros,
) -> std::result::Result<Option<AgentCaller>, DbError> {
    let agent = principals::find_agent(tx, token.principal).await?;
    let key = match (&token.made_with, &agent) {
        (Some(id), _) => agent_keys::find_key(tx, id)
            .await?
            .map(|row| CallerKey::from(&row)),
        (None, Some(agent)) => agent.key_hash.map(CallerKey::of_registration),
        (None, None) => None,
    };
    let agent = agent.map(Arc::new);
    let caller = agent.zip(key).map(|(agent, mut key)| {
        key.console_session = token.console_session;
        AgentCaller { agent, key }
    });
    Ok(caller.filter(|caller| !caller.key.is_expired(now)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{AgentId, ContactLimits, OwnerId};
    use chorus_wire::time::UnixMicros;

    //
    #[test]
    fn cached_agents_are_bounded_by_their_bytes() {
        let cache = KeyCache::new(Vec::new());
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
                sealed_endpoint_secret: None,
                market: None,
                key_hash: Some(key_hash),
                contact_limits: ContactLimits::default(),
                registered_at: UnixMicros(0),
            });
            let caller = AgentCaller {
                agent: agent.clone(),
                key: CallerKey::of_registration(key_hash),
            };
            cache.agents_by_key.insert(key_hash, caller);
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
