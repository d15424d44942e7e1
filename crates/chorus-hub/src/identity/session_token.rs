//! Session tokens: single-use credentials for streams of clients that cannot set a header.

use super::{Identity, Principal, key_cache, require_live_key};
use crate::store::session_tokens;
use crate::{Result, random};
use chorus_wire::{limits, reply::SessionToken};

/// `POST /agent/session`
pub async fn create_session_token(
    principal: &Principal,
    identity: &Identity,
) -> Result<SessionToken> {
    let caller = principal.require_caller()?.clone();
    let token = random::new_secret("cs_");
    let token_hash = key_cache::hash_secret(token.expose());
    identity
        .store
        .write_repeatable(async move |txn| {
            // a key that was rotated since the request authenticated opens nothing, so it gets no token either.
            require_live_key(txn, &caller).await?;
            let expires = txn.now().saturating_add(limits::SESSION_TOKEN_TTL);
            let made_with = caller.key.id.as_deref();
            let id = caller.id;
            session_tokens::insert_session_token(&txn.tx, &token_hash, id, made_with, expires)
                .await?;
            Ok(SessionToken {
                session_token: token.clone(),
                expires_in_seconds: limits::SESSION_TOKEN_TTL.as_secs(),
            })
        })
        .await
}
