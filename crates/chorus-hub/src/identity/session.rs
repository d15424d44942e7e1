//! Single-use tokens for streams that cannot set a header.

use super::{Principal, keyring};
use crate::store::{principals, sessions};
use crate::{Hub, Result, clock};
use chorus_wire::{Code, limits, reply::SessionToken};

/// `POST /agent/session`
pub async fn open_session(who: &Principal, hub: &Hub) -> Result<SessionToken> {
    let agent = who.agent()?.clone();
    let token = clock::new_secret("cs_");
    let hash = keyring::hash(token.expose());
    hub.store()
        .write(async move |txn| {
            // a key that was rotated since it was looked at opens nothing any more, and makes nothing that could.
            let now = principals::by_id(&txn.tx, agent.id).await?;
            if now.is_none_or(|now| now.key_hash != agent.key_hash) {
                return Err(Code::Unauthorized.into());
            }
            let expires = txn.now().plus(limits::SESSION_TOKEN_LIFE);
            Ok(sessions::insert(&txn.tx, &hash, agent.id, expires).await?)
        })
        .await?;
    Ok(SessionToken {
        session_token: token,
        expires_in_seconds: limits::SESSION_TOKEN_LIFE.as_secs(),
    })
}
