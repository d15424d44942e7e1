//! Agent host: gives an agent behind a firewall one URL, and puts what services post there on its
//! inbox (R-70, R-78).

use super::tokens::{self, PresentedToken};
use crate::context::HubContext;
use crate::delivery::sealed_delivery::seal_credentials;
use crate::identity::{hash_secret, require_live_key};
use crate::store::{
    AgentId, EntryKind, NewLogEntry, OwnerId, SubjectId, WriteTxn, channels, connection_strings,
    owner_usage,
};
use crate::{Principal, Result, random};
use chorus_wire::channel::connection::{ConnectionCreated, ConnectionRevoked};
use chorus_wire::channel::delivery::{
    ChannelDelivery, HUB_FIELDS, HUB_FIELDS_START, WebhookHeaders,
};
use chorus_wire::{Error, ErrorCode, limits, secret::Secret};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// `POST /agent/connection`: always issues a new connection string, because the old one is stored
/// as a hash and cannot be shown again.
pub async fn create_connection_string(
    principal: &Principal,
    hub: &HubContext,
    public_url: &str,
) -> Result<ConnectionCreated> {
    let caller = principal.require_caller()?.clone();
    let secret = random::new_secret("sk_");
    let secret_hash = hash_secret(secret.expose());
    let url = format!(
        "{}/inbox/{}",
        public_url.trim_end_matches('/'),
        secret.expose()
    );
    hub.store()
        .write_repeatable(async move |txn| {
            require_live_key(txn, &caller).await?;
            connection_strings::set_connection_string(
                &txn.tx,
                caller.id,
                &secret_hash,
                caller.key.id.as_deref(),
                txn.now(),
            )
            .await?;
            Ok(ConnectionCreated {
                connection_string: Secret::new(url.as_str()),
            })
        })
        .await
}

/// `DELETE /agent/connection`: services can no longer reach this agent.
pub async fn revoke_connection_string(
    principal: &Principal,
    hub: &HubContext,
) -> Result<ConnectionRevoked> {
    let id = principal.require_agent()?.id;
    let revoked = hub
        .store()
        .write(
            async move |txn| Ok(connection_strings::revoke_connection_string(&txn.tx, id).await?),
        )
        .await?;
    Ok(ConnectionRevoked { revoked })
}

/// An agent's inbox as a service sees it: it takes deliveries and does not reveal the agent.
#[derive(Clone, Debug)]
pub struct HostedInbox {
    agent: AgentId,
    secret_hash: [u8; 32],
    owner: Option<OwnerId>,
}

impl HostedInbox {
    /// Looks up the inbox of a connection string. A revoked, a rotated and an unknown secret get
    /// the same answer after the same look-up (R-74, R-78).
    pub async fn find(hub: &HubContext, secret: &Secret) -> Result<Self> {
        let secret_hash = hash_secret(secret.expose());
        let now = hub.clock().now();
        let (agent, owner) = hub
            .store()
            .read(async move |tx| {
                let agent = connection_strings::find_agent_by_hash(tx, &secret_hash, now)
                    .await?
                    .ok_or(ErrorCode::NotFound)?;
                Ok((agent, owner_usage::find_agent_owner(tx, agent).await?))
            })
            .await?;
        Ok(Self {
            agent,
            secret_hash,
            owner,
        })
    }

    /// Identifies the agent for rate limits.
    pub fn agent_row_id(&self) -> AgentId {
        self.agent
    }

    /// `POST /inbox/{sk_…}`: puts the body on the agent's inbox as it is, marked with its origin. A
    /// delivery that was accepted before changes nothing (R-72).
    pub async fn accept_delivery(
        &self,
        hub: &HubContext,
        delivery: &ChannelDelivery,
        body: &str,
        webhook_headers: Option<WebhookHeaders>,
    ) -> Result<()> {
        if let Some(owner) = self.owner {
            hub.identity()
                .charge_stored_bytes(owner, body.len())
                .await?;
        }
        let secret_hash = self.secret_hash;
        let delivery_hash = hash_delivery_ids(delivery);
        let body = add_hub_fields(delivery, body, webhook_headers)?;
        let body = Arc::<str>::from(seal_credentials(hub.seal_key(), &body)?);
        let channel_id = delivery.channel.id.clone();
        let callback = delivery.callback.clone();
        let hub_handle = hub.clone();
        hub.store()
            .write(async move |txn| {
                // Checked again inside the transaction: the secret may have been rotated since
                // (CHN-04).
                let agent =
                    connection_strings::find_agent_by_hash(&txn.tx, &secret_hash, txn.now())
                        .await?
                        .ok_or(ErrorCode::NotFound)?;
                // A service must not speak for a channel of this hub: the agent would send its
                // answer to the service.
                if channels::is_public_id_known(&txn.tx, &channel_id).await?
                    && !is_own_delivery(&hub_handle, txn, &channel_id, &callback, &secret_hash)
                        .await?
                {
                    return Err(Error::new(
                        ErrorCode::Conflict,
                        "channel.id is a channel of this hub, which delivers its messages itself; add the agent to it by agent_id",
                    ));
                }
                if connection_strings::record_first_delivery(
                    &txn.tx,
                    agent,
                    &delivery_hash,
                    txn.now(),
                )
                .await?
                {
                    txn.append_entry(NewLogEntry {
                        subject: agent.into(),
                        subject_name: "".into(),
                        kind: EntryKind::Channel,
                        actor: SubjectId::HUB,
                        actor_name: "".into(),
                        body: body.clone(),
                        fallback: None,
                    });
                }
                Ok(())
            })
            .await
    }
}

/// The hash by which a repeated delivery is recognised. Two services may use the same ids, so the service and the origin of
/// the callback are part of it (R-90). The length prefixes keep `a`+`bc` and `ab`+`c` apart.
fn hash_delivery_ids(delivery: &ChannelDelivery) -> [u8; 32] {
    let origin = delivery.service_origin().unwrap_or_default();
    let service = delivery.channel.service.as_deref().unwrap_or_default();
    let mut hasher = Sha256::new();
    for part in [
        &*origin,
        service,
        &delivery.channel.id,
        &delivery.message.id,
    ] {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().into()
}

/// Whether this hub sent the delivery to one of its own members by connection string: its callback is one that the hub issued
/// to the member of that channel whose connection string this inbox has. No other client knows such a callback.
async fn is_own_delivery(
    hub: &HubContext,
    txn: &WriteTxn<'_>,
    channel_id: &str,
    callback: &Secret,
    secret_hash: &[u8; 32],
) -> Result<bool> {
    let last_segment = |url: &Secret| -> String {
        let segment = url.expose().rsplit('/').next().unwrap_or_default();
        segment.to_owned()
    };
    let presented = PresentedToken::read(hub.seal_key(), &last_segment(callback));
    let actor = match tokens::resolve_callback(&txn.tx, channel_id, &presented, txn.now()).await {
        Ok(actor) => actor,
        Err(error) if error.code.status() < 500 => return Ok(false),
        Err(error) => return Err(error),
    };
    let connection = actor
        .member
        .sealed_connection
        .as_deref()
        .and_then(|sealed| hub.seal_key().unseal(sealed));
    Ok(connection.is_some_and(|url| hash_secret(&last_segment(&url)).ct_eq(secret_hash).into()))
}

/// Appends the fields that the hub writes: `origin`, and for a signed delivery what its signature needs (CHN-34). A service
/// cannot set them: its own fields of these names are removed.
fn add_hub_fields(
    delivery: &ChannelDelivery,
    body: &str,
    webhook_headers: Option<WebhookHeaders>,
) -> Result<String> {
    let single_line = join_lines(body);
    let mut fields: BTreeMap<String, &RawValue> =
        serde_json::from_str(&single_line).map_err(Error::internal)?;
    let field_count = fields.len();
    fields.retain(|name, _| !HUB_FIELDS.contains(&name.as_str()));
    let kept = if fields.len() == field_count {
        single_line
    } else {
        serde_json::to_string(&fields).map_err(Error::internal)?
    };
    let open = kept.strip_suffix('}').unwrap_or(&kept);
    let origin = serde_json::to_string(&delivery.service_origin()).map_err(Error::internal)?;
    let mut marked = format!("{open}{HUB_FIELDS_START}{origin}");
    if let Some(headers) = webhook_headers {
        let headers = serde_json::to_string(&headers).map_err(Error::internal)?;
        marked.push_str(&format!(r#","webhook_headers":{headers}"#));
        if kept != body {
            // Only if the event still fits what clients buffer. Without it the signature cannot be checked.
            let exact = serde_json::to_string(body).map_err(Error::internal)?;
            if marked.chars().count() + exact.chars().count() <= limits::DELIVERY_CHARS {
                marked.push_str(&format!(r#","signed_body":{exact}"#));
            }
        }
    }
    marked.push('}');
    Ok(marked)
}

/// Removes line breaks, because the data of an SSE event is one line. In JSON a raw line break can
/// only stand between tokens, so the value stays the same.
fn join_lines(body: &str) -> String {
    body.trim().replace(['\n', '\r'], "")
}
