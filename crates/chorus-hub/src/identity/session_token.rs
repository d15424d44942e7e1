//! Session tokens: single-use credentials for streams of clients that cannot set a header.

use super::{Identity, Principal, key_cache, require_live_key};
use crate::store::session_tokens::{self, NewSessionToken};
use crate::{Result, random};
use chorus_wire::{limits, reply::SessionToken, secret::Secret};
use std::time::Duration;

/// `POST /agent/session`
pub async fn create_session_token(
    principal: &Principal,
    identity: &Identity,
) -> Result<SessionToken> {
    let session_token = insert_token(principal, identity, limits::SESSION_TOKEN_TTL).await?;
    Ok(SessionToken {
        session_token,
        expires_in_seconds: limits::SESSION_TOKEN_TTL.as_secs(),
    })
}

/// The agent of a single-use `cs_` token, and the token with which it may open the stream again.
pub async fn open_session(identity: &Identity, token: &str) -> Result<(Principal, Secret)> {
    let principal = key_cache::authenticate_session(identity, token).await?;
    let resume_token = insert_token(&principal, identity, limits::RESUME_TOKEN_TTL).await?;
    Ok((principal, resume_token))
}

async fn insert_token(
    principal: &Principal,
    identity: &Identity,
    life: Duration,
) -> Result<Secret> {
    let caller = principal.require_caller()?.clone();
    let token = random::new_secret("cs_");
    let token_hash = key_cache::hash_secret(token.expose());
    identity
        .store
        .write_repeatable(async move |txn| {
            // a key that was rotated since the request authenticated opens nothing, so it gets no token either.
            require_live_key(txn, &caller).await?;
            let new_token = NewSessionToken {
                hash: token_hash,
                principal: caller.id,
                made_with: caller.key.id.as_deref(),
                console_session: caller.key.console_session,
                expires_at: txn.now().saturating_add(life),
            };
            session_tokens::insert_session_token(&txn.tx, new_token).await?;
            Ok(SessionToken {
                session_token: token.clone(),
                expires_in_seconds: life.as_secs(),
            })
        })
        .await
        .map(|created| created.session_token)
}
