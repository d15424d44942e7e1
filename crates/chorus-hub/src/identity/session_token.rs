//! Session tokens: single-use credentials for streams of clients that cannot set a header.

use super::{Identity, Principal, key_cache};
use crate::store::{principals, session_tokens};
use crate::{Result, random};
use chorus_wire::{ErrorCode, limits, reply::SessionToken};

/// `POST /agent/session`
pub async fn create_session_token(
    principal: &Principal,
    identity: &Identity,
) -> Result<SessionToken> {
    let agent = principal.require_agent()?.clone();
    let token = random::new_secret("cs_");
    let token_hash = key_cache::hash_secret(token.expose());
    identity
        .store
        .write(async move |txn| {
            // a key that was rotated since the request authenticated opens nothing, so it gets no token either.
            let current = principals::find_agent(&txn.tx, agent.id).await?;
            if current.is_none_or(|current| current.key_hash != agent.key_hash) {
                return Err(ErrorCode::Unauthorized.into());
            }
            let expires = txn.now().saturating_add(limits::SESSION_TOKEN_TTL);
            Ok(
                session_tokens::insert_session_token(&txn.tx, &token_hash, agent.id, expires)
                    .await?,
            )
        })
        .await?;
    Ok(SessionToken {
        session_token: token,
        expires_in_seconds: limits::SESSION_TOKEN_TTL.as_secs(),
    })
}
