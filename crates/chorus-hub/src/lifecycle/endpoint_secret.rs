//! Makes the secret that signs what the hub posts to an agent's endpoints.

use crate::context::HubContext;
use crate::identity::require_live_key;
use crate::store::{CacheInvalidation, agent_keys, principals};
use crate::{Principal, Result, random};
use chorus_wire::ErrorCode;
use chorus_wire::reply::EndpointSecret;

/// `POST /agent/endpoint-secret`: the secret is shown only in this reply, and replaces the one before it.
pub async fn create_endpoint_secret(
    principal: &Principal,
    hub: &HubContext,
) -> Result<EndpointSecret> {
    let caller = principal.require_caller()?.clone();
    let secret = random::new_signing_secret();
    let sealed: Box<[u8]> = hub.seal_key().seal_secret(&secret)?.into();
    let host = hub.options().host_name.clone();
    let changed = hub
        .store()
        .write(async move |txn| {
            // a key that has ended since the request authenticated changes nothing.
            require_live_key(txn, &caller).await?;
            let before = principals::find_agent(&txn.tx, caller.id)
                .await?
                .ok_or(ErrorCode::Unauthorized)?;
            let mut after = before.clone();
            after.sealed_endpoint_secret = Some(sealed.clone());
            principals::update_agent(&txn.tx, &after).await?;
            let further_keys = agent_keys::list_keys(&txn.tx, before.id).await?;
            let invalidation = CacheInvalidation::for_agent(&before, &host, &further_keys);
            txn.invalidate_caches(&invalidation);
            Ok(invalidation)
        })
        .await;
    let invalidation = hub.identity().key_cache().clear_if_uncertain(changed)?;
    hub.identity().key_cache().invalidate(&invalidation);
    Ok(EndpointSecret {
        endpoint_secret: secret,
    })
}
