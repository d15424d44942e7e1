//! Signing in to the console: a single-use link signs a browser in, for half a day and with the rights of the key that made the link.
//!
//! They are session tokens with prefixes of their own. The stored hash covers the prefix, so the token of a stream, which is
//! part of a URL, can never be exchanged for a session.

use super::key_cache::{self, find_token_caller};
use super::{AgentCaller, Identity, OperatorCaller, OperatorKey, Principal, require_live_key};
use crate::store::session_tokens::{
    self, ConsoleSessionRow, NO_AGENT, NewSessionToken, RedeemedToken,
};
use crate::store::{CacheInvalidation, EndedKey, SubjectId, WriteTxn, channels};
use crate::{Result, random};
use chorus_wire::reply::{ConsoleLink, ConsoleSession, ConsoleSessionEnded};
use chorus_wire::{Error, ErrorCode, limits, secret::Secret};
use std::net::IpAddr;

const LINK_PREFIX: &str = "cl_";
/// Two prefixes, so that the page knows without a request which views to show.
const AGENT_SESSION_PREFIX: &str = "cc_";
const OPERATOR_SESSION_PREFIX: &str = "co_";

/// Octets of a link or of a session's credential.
const TOKEN_BYTES: usize = 35;

/// The form of a session's credential; any other text needs no query.
pub fn is_sign_in_credential(key: &str) -> bool {
    let has_prefix =
        key.starts_with(AGENT_SESSION_PREFIX) || key.starts_with(OPERATOR_SESSION_PREFIX);
    has_prefix && key.len() == TOKEN_BYTES
}

/// The key that makes a link.
enum LinkMaker {
    Agent(AgentCaller),
    Operator { fingerprint: u64 },
}

/// `POST /console/links`
pub async fn create_console_link(
    principal: &Principal,
    identity: &Identity,
) -> Result<ConsoleLink> {
    let maker = match principal {
        Principal::Anonymous => return Err(ErrorCode::Unauthorized.into()),
        Principal::Agent(caller) => LinkMaker::Agent(caller.clone()),
        Principal::Operator(operator) => LinkMaker::Operator {
            fingerprint: operator.fingerprint,
        },
    };
    insert_link(identity, maker, principal.clone()).await
}

/// A link for the first operator key of the configuration, to be shown on the terminal of the hub; `None` without operators.
pub async fn create_operator_link(identity: &Identity) -> Result<Option<ConsoleLink>> {
    let Some(key) = identity.key_cache().first_operator_key() else {
        return Ok(None);
    };
    let maker = LinkMaker::Operator {
        fingerprint: key.fingerprint(),
    };
    // Made by the hub itself, for the terminal that it was started on: no act of an operator.
    insert_link(identity, maker, Principal::Anonymous)
        .await
        .map(Some)
}

async fn insert_link(
    identity: &Identity,
    maker: LinkMaker,
    principal: Principal,
) -> Result<ConsoleLink> {
    let life = limits::CONSOLE_LINK_TTL;
    let link = ConsoleLink {
        link_token: random::new_secret(LINK_PREFIX),
        expires_in_seconds: life.as_secs(),
    };
    identity
        .store
        .write_repeatable(async move |txn| {
            let (agent, made_with) = match &maker {
                LinkMaker::Agent(caller) => {
                    // a key that was rotated since the request authenticated opens nothing.
                    require_live_key(txn, caller).await?;
                    (caller.id, caller.key.id.as_deref().map(str::to_owned))
                }
                LinkMaker::Operator { fingerprint } => {
                    (NO_AGENT, Some(format!("{fingerprint:016x}")))
                }
            };
            let new_link = NewSessionToken {
                hash: key_cache::hash_secret(link.link_token.expose()),
                principal: agent,
                made_with: made_with.as_deref(),
                console_session: None,
                expires_at: txn.now().saturating_add(life),
            };
            session_tokens::insert_session_token(&txn.tx, new_link).await?;
            // a link of an operator is a credential.
            principal.record_operator_act(txn, "create_console_link", "");
            Ok(link.clone())
        })
        .await
}

/// `POST /console/session`: spends the link. Returns also the sessions that ended because their key had too many.
pub(crate) async fn sign_in_to_console(
    identity: &Identity,
    link_token: &Secret,
) -> Result<(ConsoleSession, Vec<EndedKey>)> {
    let link_refused = || {
        let message = "the link was used before, or is older than five minutes; run `chorus console` for a new one";
        Error::new(ErrorCode::Unauthorized, message)
    };
    let text = link_token.expose();
    if !text.starts_with(LINK_PREFIX) || text.len() != TOKEN_BYTES {
        return Err(link_refused());
    }
    let link_hash = key_cache::hash_secret(link_token.expose());
    let life = limits::CONSOLE_SESSION_TTL;
    let agent_token = random::new_secret(AGENT_SESSION_PREFIX);
    let operator_token = random::new_secret(OPERATOR_SESSION_PREFIX);
    let (session_token, replaced) = identity
        .store
        .write(async move |txn| {
            let now = txn.now();
            let link = session_tokens::redeem_session_token(&txn.tx, &link_hash, now).await?;
            let Some(link) = link else { return Ok(None) };
            let token = match link.principal {
                NO_AGENT => &operator_token,
                _ => &agent_token,
            };
            // A link whose key has ended in the meantime is refused at the first use of the session.
            let replaced = insert_session(txn, token, &link).await?;
            Ok(Some((token.clone(), replaced)))
        })
        .await?
        .ok_or_else(link_refused)?;
    let session = ConsoleSession {
        session_token,
        expires_in_seconds: life.as_secs(),
    };
    Ok((session, replaced))
}

/// Stores a new session of the key that made the link, and ends the oldest ones that the key has too many.
async fn insert_session(
    txn: &mut WriteTxn<'_>,
    token: &Secret,
    link: &RedeemedToken,
) -> Result<Vec<EndedKey>> {
    let hash = key_cache::hash_secret(token.expose());
    let made_with = link.made_with.as_deref();
    let new_session = NewSessionToken {
        hash,
        principal: link.principal,
        made_with,
        console_session: Some(hash),
        expires_at: txn.now().saturating_add(limits::CONSOLE_SESSION_TTL),
    };
    session_tokens::insert_session_token(&txn.tx, new_session).await?;
    let max_sessions = limits::CONSOLE_SESSIONS_PER_KEY;
    let surplus = session_tokens::list_surplus_sessions(
        &txn.tx,
        link.principal,
        made_with,
        &hash,
        max_sessions,
    )
    .await?;
    end_sessions(txn, &surplus).await
}

/// Ends sessions with the tokens that were made in them, and tells the other hubs to end their streams. The caller ends those
/// of this hub after the commit.
pub(crate) async fn end_sessions(
    txn: &mut WriteTxn<'_>,
    sessions: &[ConsoleSessionRow],
) -> Result<Vec<EndedKey>> {
    let mut ended = Vec::new();
    for session in sessions {
        session_tokens::delete_console_session(&txn.tx, session).await?;
        let mut subjects = Vec::new();
        if session.principal != NO_AGENT {
            let members = channels::list_memberships(&txn.tx, session.principal).await?;
            subjects.push(session.principal.into());
            subjects.extend(members.iter().map(|member| SubjectId::from(member.id)));
        }
        ended.push(EndedKey {
            hash: session.hash,
            subjects,
        });
    }
    if !ended.is_empty() {
        txn.invalidate_caches(&CacheInvalidation {
            ended_keys: ended.clone(),
            ..CacheInvalidation::default()
        });
    }
    Ok(ended)
}

/// `DELETE /console/session`: the page signs out. Keys are not ended by it. Returns what ended.
pub(crate) async fn sign_out_of_console(
    identity: &Identity,
    credential: Option<&str>,
) -> Result<(ConsoleSessionEnded, Vec<EndedKey>)> {
    let Some(token) = credential.filter(|text| is_sign_in_credential(text)) else {
        return Ok((ConsoleSessionEnded { ended: false }, Vec::new()));
    };
    let hash = key_cache::hash_secret(token);
    let ended = identity
        .store
        .write(async move |txn| {
            let now = txn.now();
            let session = session_tokens::find_session_token(&txn.tx, &hash, now).await?;
            let session = session.map(|session| ConsoleSessionRow {
                hash,
                principal: session.principal,
            });
            end_sessions(txn, session.as_slice()).await
        })
        .await?;
    let reply = ConsoleSessionEnded {
        ended: !ended.is_empty(),
    };
    Ok((reply, ended))
}

/// The principal of a session. It is looked up at every request: a page makes few, and a session that was ended on another hub
/// is refused at once.
pub(super) async fn authenticate_sign_in(
    identity: &Identity,
    token: &str,
    address: Option<IpAddr>,
) -> Result<Principal> {
    let token_hash = key_cache::hash_secret(token);
    let now = identity.clock.now();
    let (session, caller) = identity
        .store
        .read(async move |tx| {
            let mut session = session_tokens::find_session_token(tx, &token_hash, now).await?;
            if let Some(session) = &mut session {
                // Sessions from before the column say nothing.
                session.console_session = Some(token_hash);
            }
            let caller = match &session {
                Some(session) if session.principal != NO_AGENT => {
                    find_token_caller(tx, session, now).await?
                }
                Some(_) | None => None,
            };
            Ok((session, caller))
        })
        .await?;
    if let Some(caller) = caller {
        identity.record_agent_seen_everywhere(caller.id).await;
        return Ok(Principal::Agent(caller));
    }
    session
        .and_then(|session| find_operator_key(identity, &session))
        .map(|key| {
            let mut operator = OperatorCaller::new(key, address);
            operator.console_session = Some(token_hash);
            Principal::Operator(operator)
        })
        .ok_or_else(|| ErrorCode::Unauthorized.into())
}

/// The operator key that made a session, if the hub is still configured with it.
fn find_operator_key<'a>(
    identity: &'a Identity,
    session: &RedeemedToken,
) -> Option<&'a OperatorKey> {
    if session.principal != NO_AGENT {
        return None;
    }
    let fingerprint = u64::from_str_radix(session.made_with.as_deref()?, 16).ok()?;
    identity
        .key_cache()
        .find_operator_by_fingerprint(fingerprint)
}
