//! The keys of an agent: making, listing and ending further keys, and rotating the key of its registration.

use super::list_member_ids;
use crate::context::HubContext;
use crate::delivery::end_streams_of_key;
use crate::frame::Frames;
use crate::identity::{AgentCaller, DAY_MICROS, IdempotencyKey, hash_secret, require_live_key};
use crate::store::key_rotations::{self, PendingRotation};
use crate::store::{
    Agent, AgentId, AgentKeyRow, CacheInvalidation, EndedKey, SubjectId, WriteTxn, agent_keys,
    channel_tokens, connection_strings, principals, record_activity, session_tokens,
};
use crate::stream_end::StreamEnd;
use crate::{Principal, Result, random};
use chorus_wire::agent_key::{
    AgentKeyRecord, AgentKeyRevoked, KeyRotation, KeyScope, KeyScopes, NewAgentKey, RotatedKey,
};
use chorus_wire::time::UnixMicros;
use chorus_wire::{Error, ErrorCode, limits, secret::Secret};
use serde_json::json;
use std::time::Duration;

/// The label of a registration's key that was rotated and still works for a while.
const REPLACED_KEY_LABEL: &str = "the registration's old key";
/// Max keys that one transaction ends because their time is over.
const EXPIRED_KEYS_PER_STEP: usize = 100;

/// `POST /agent/keys`: only this answer contains the key.
pub async fn create_key(
    principal: &Principal,
    hub: &HubContext,
    new: NewAgentKey,
) -> Result<AgentKeyRecord> {
    let caller = principal.require_caller()?.clone();
    let key = random::new_secret("ca_");
    let hash = hash_secret(key.expose());
    hub.store()
        .write_repeatable(async move |txn| {
            require_live_key(txn, &caller).await?;
            check_key_quota(txn, caller.id).await?;
            let lifetime = new.expires_in_s.map(Duration::from_secs);
            let row = AgentKeyRow {
                id: random::new_id().to_string(),
                agent: caller.id,
                hash,
                label: new.label.clone(),
                scopes: new.scopes.iter().copied().collect(),
                created_at: txn.now(),
                expires_at: lifetime.map(|lifetime| txn.now().saturating_add(lifetime)),
                used_on: None,
            };
            agent_keys::insert_key(&txn.tx, &row).await?;
            record_activity(
                txn,
                "key_created",
                &json!({"agent_id": &*caller.agent_id, "key": &row.id}),
            );
            Ok(describe_key(&row, Some(key.clone())))
        })
        .await
}

/// `GET /agent/keys`
pub async fn list_keys(principal: &Principal, hub: &HubContext) -> Result<Vec<AgentKeyRecord>> {
    let agent = principal.require_agent()?.id;
    let now = hub.clock().now();
    let rows = hub
        .store()
        .read(async move |tx| Ok(agent_keys::list_keys(tx, agent).await?))
        .await?;
    let is_live = |row: &&AgentKeyRow| row.expires_at.is_none_or(|expires_at| now < expires_at);
    let live_rows = rows.iter().filter(is_live);
    Ok(live_rows.map(|row| describe_key(row, None)).collect())
}

/// `DELETE /agent/keys/{id}`: the key and what was made with it end in one transaction.
pub async fn revoke_key(
    principal: &Principal,
    hub: &HubContext,
    frames: &Frames,
    id: &str,
) -> Result<AgentKeyRevoked> {
    let caller = principal.require_caller()?.clone();
    let key_id = id.to_owned();
    let ended = hub
        .store()
        .write(async move |txn| {
            require_live_key(txn, &caller).await?;
            let row = agent_keys::find_key(&txn.tx, &key_id)
                .await?
                .filter(|row| row.agent == caller.id)
                .ok_or_else(|| Error::new(ErrorCode::NotFound, "the agent has no such key"))?;
            let ended = end_further_key(txn, &row).await?;
            record_activity(
                txn,
                "key_revoked",
                &json!({"agent_id": &*caller.agent_id, "key": &row.id}),
            );
            Ok(ended)
        })
        .await;
    let ended = hub.identity().key_cache().clear_if_uncertain(ended)?;
    apply_ended_keys(hub, frames, &[ended]);
    Ok(AgentKeyRevoked {
        id: id.to_owned(),
        revoked: true,
    })
}

/// `POST /agent/keys/rotate`: a new key for the registration.
pub async fn rotate_key(
    principal: &Principal,
    hub: &HubContext,
    frames: &Frames,
    rotation: KeyRotation,
    request: Option<IdempotencyKey>,
) -> Result<RotatedKey> {
    let caller = principal.require_caller()?.clone();
    let key = random::new_secret("ca_");
    let new_hash = hash_secret(key.expose());
    let overlap = Duration::from_secs(rotation.overlap_s.unwrap_or(0));
    let host = hub.options().host_name.clone();
    let rotated = hub
        .store()
        .write(async move |txn| {
            let before = principals::find_agent(&txn.tx, caller.id)
                .await?
                .ok_or(ErrorCode::Unauthorized)?;
            let attempt = check_rotation(txn, &caller, request.as_ref()).await?;
            let mut after = before.clone();
            after.key_hash = Some(new_hash);
            principals::update_agent(&txn.tx, &after).await?;
            let overlap = match attempt {
                RotationAttempt::First => overlap,
                // The key of the answer that was lost: it has never been used.
                RotationAttempt::Repeated => Duration::ZERO,
            };
            let replaced = replace_registration_key(txn, &before, overlap).await?;
            record_attempt(txn, &caller, new_hash, request.as_ref()).await?;
            let further_keys = agent_keys::list_keys(&txn.tx, before.id).await?;
            let mut invalidation = CacheInvalidation::for_agent(&before, &host, &further_keys);
            invalidation.ended_keys.extend(replaced.ended.clone());
            txn.invalidate_caches(&invalidation);
            record_activity(txn, "key_rotated", &json!({"agent_id": &*before.agent_id}));
            Ok((before, replaced, invalidation))
        })
        .await;
    let (before, replaced, invalidation) =
        hub.identity().key_cache().clear_if_uncertain(rotated)?;
    hub.identity().key_cache().invalidate(&invalidation);
    apply_ended_keys(hub, frames, replaced.ended.as_slice());
    Ok(RotatedKey {
        agent_id: before.agent_id.to_string(),
        api_key: key,
        old_key_until: replaced.until,
    })
}

/// Whether a rotation is the first of its request, or repeats one whose answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RotationAttempt {
    First,
    Repeated,
}

/// A rotation needs a key that is still valid, or repeats the request of one that it has replaced.
pub(super) async fn check_rotation(
    txn: &WriteTxn<'_>,
    caller: &AgentCaller,
    request: Option<&IdempotencyKey>,
) -> Result<RotationAttempt> {
    let pending = key_rotations::find_rotation_asked_by(&txn.tx, &caller.key.hash).await?;
    if let (Some(pending), Some(request)) = (pending, request)
        && pending.agent == caller.id
        && pending.request.key == request.key
    {
        return match pending.request.fingerprint == request.fingerprint {
            true => Ok(RotationAttempt::Repeated),
            false => Err(ErrorCode::IdempotencyConflict.into()),
        };
    }
    require_live_key(txn, caller).await?;
    Ok(RotationAttempt::First)
}

/// Remembers the request until the new key is used. A request without an `Idempotency-Key` cannot be repeated.
pub(super) async fn record_attempt(
    txn: &WriteTxn<'_>,
    caller: &AgentCaller,
    new_hash: [u8; 32],
    request: Option<&IdempotencyKey>,
) -> Result<()> {
    match request {
        Some(request) => {
            let rotation = PendingRotation {
                agent: caller.id,
                asked_by: caller.key.hash,
                new_hash,
                request: request.clone(),
            };
            key_rotations::record_rotation(&txn.tx, &rotation).await?;
        }
        None => key_rotations::forget_rotation(&txn.tx, caller.id).await?,
    }
    Ok(())
}

/// What became of a registration's key that was replaced.
#[derive(Debug, Default)]
pub(super) struct ReplacedKey {
    /// `None` while it still works.
    pub ended: Option<EndedKey>,
    pub until: Option<UnixMicros>,
}

/// Ends the registration's old key or, with an overlap, keeps it as a further key that expires.
pub(super) async fn replace_registration_key(
    txn: &WriteTxn<'_>,
    before: &Agent,
    overlap: Duration,
) -> Result<ReplacedKey> {
    let Some(hash) = before.key_hash else {
        return Ok(ReplacedKey::default());
    };
    if overlap.is_zero() {
        let ended = end_key(txn, before.id, None, KeyScopes::ALL, hash).await?;
        return Ok(ReplacedKey {
            ended: Some(ended),
            until: None,
        });
    }
    check_key_quota(txn, before.id).await?;
    let until = txn.now().saturating_add(overlap);
    let row = AgentKeyRow {
        id: random::new_id().to_string(),
        agent: before.id,
        hash,
        label: REPLACED_KEY_LABEL.to_owned(),
        scopes: KeyScopes::ALL,
        created_at: txn.now(),
        expires_at: Some(until),
        used_on: None,
    };
    agent_keys::insert_key(&txn.tx, &row).await?;
    // What the key has made ends when it does, so it must not be taken for what the new key makes.
    session_tokens::retie_session_tokens(&txn.tx, before.id, &row.id).await?;
    channel_tokens::retie_made_tokens(&txn.tx, before.id, &row.id).await?;
    connection_strings::retie_connection_string(&txn.tx, before.id, &row.id).await?;
    Ok(ReplacedKey {
        ended: None,
        until: Some(until),
    })
}

/// Ends what was made with a key: `id` is `None` for the key of the registration.
async fn end_key(
    txn: &WriteTxn<'_>,
    agent: AgentId,
    id: Option<&str>,
    scopes: KeyScopes,
    hash: [u8; 32],
) -> Result<EndedKey> {
    session_tokens::revoke_session_tokens(&txn.tx, agent, id).await?;
    channel_tokens::expire_made_tokens(&txn.tx, agent, id, txn.now()).await?;
    connection_strings::revoke_string_made_with(&txn.tx, agent, id).await?;
    if scopes.contains(KeyScope::Read) {
        // A holder of the key may have read the credentials of any delivery.
        channel_tokens::expire_delivery_tokens(&txn.tx, agent, txn.now()).await?;
    }
    let member_ids = list_member_ids(txn, agent).await?;
    let members = member_ids.into_iter().map(SubjectId::from);
    Ok(EndedKey {
        hash,
        subjects: std::iter::once(agent.into()).chain(members).collect(),
    })
}

async fn end_further_key(txn: &mut WriteTxn<'_>, row: &AgentKeyRow) -> Result<EndedKey> {
    agent_keys::delete_key(&txn.tx, &row.id).await?;
    let ended = end_key(txn, row.agent, Some(&row.id), row.scopes, row.hash).await?;
    txn.invalidate_caches(&CacheInvalidation {
        ended_keys: vec![ended.clone()],
        ..CacheInvalidation::default()
    });
    Ok(ended)
}

/// After the commit: the keys leave the cache of this hub, and the streams that they opened here end.
pub(super) fn apply_ended_keys(hub: &HubContext, frames: &Frames, ended_keys: &[EndedKey]) {
    hub.identity().key_cache().forget_keys(ended_keys);
    for ended in ended_keys {
        end_streams_of_key(hub.live_streams(), ended);
        for subject in &ended.subjects {
            frames.end_key_streams(subject.as_agent(), &ended.hash, StreamEnd::KeyRotated);
        }
    }
}

/// Ends the keys whose time is over. They are refused from that time on; this ends the streams that they opened.
pub(crate) async fn end_expired_keys(hub: &HubContext, frames: &Frames) -> Result<()> {
    loop {
        let now = hub.clock().now();
        let due = hub
            .store()
            .read(async move |tx| Ok(agent_keys::list_expired_keys(tx, now, 1).await?))
            .await?;
        if due.is_empty() {
            return Ok(());
        }
        let ended = hub
            .store()
            .write(async move |txn| {
                let mut ended = Vec::new();
                for row in
                    agent_keys::list_expired_keys(&txn.tx, now, EXPIRED_KEYS_PER_STEP).await?
                {
                    ended.push(end_further_key(txn, &row).await?);
                }
                Ok(ended)
            })
            .await?;
        apply_ended_keys(hub, frames, &ended);
    }
}

async fn check_key_quota(txn: &WriteTxn<'_>, agent: AgentId) -> Result<()> {
    let max_keys = limits::KEYS_PER_AGENT;
    if agent_keys::list_keys(&txn.tx, agent).await?.len() < max_keys {
        return Ok(());
    }
    let message = format!("keys: an agent has at most {max_keys} further keys");
    Err(Error::new(ErrorCode::Quota, message))
}

fn describe_key(row: &AgentKeyRow, key: Option<Secret>) -> AgentKeyRecord {
    AgentKeyRecord {
        id: row.id.clone(),
        key,
        label: row.label.clone(),
        scopes: row.scopes.to_list(),
        created_at: row.created_at,
        expires_at: row.expires_at,
        last_used: row.used_on.map(day_text),
    }
}

/// `2026-03-20`
fn day_text(day: i64) -> String {
    let mut text = UnixMicros(day.saturating_mul(DAY_MICROS)).to_rfc3339_millis();
    text.truncate("2026-03-20".len());
    text
}
