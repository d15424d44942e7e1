//! Single-use tokens for streams that cannot set a header.

use super::{Principal, keyring};
use crate::store::sessions;
use crate::{Hub, Result, clock};
use chorus_wire::{limits, reply::SessionToken};

/// `POST /agent/session`
pub async fn open_session(who: &Principal, hub: &Hub) -> Result<SessionToken> {
    let id = who.agent()?.id;
    let token = clock::new_secret("cs_");
    let hash = keyring::hash(token.expose());
    hub.store()
        .write(async move |txn| {
            let expires = txn.now().plus(limits::SESSION_TOKEN_LIFE);
            Ok(sessions::insert(&txn.tx, &hash, id, expires).await?)
        })
        .await?;
    Ok(SessionToken { session_token: token, expires_in_seconds: limits::SESSION_TOKEN_LIFE.as_secs() })
}
