//! The agent host: an agent behind a firewall gets one URL, and what services post there is on its inbox.

use crate::identity::hash_secret;
use crate::store::{EntryKind, NewLogEntry, connection_strings, log, principals};
use crate::{Hub, Principal, Result, clock};
use chorus_wire::channel::connection::{ConnectionCreated, ConnectionRevoked};
use chorus_wire::channel::delivery::ChannelDelivery;
use chorus_wire::{Code, secret::Secret};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// `POST /agent/connection`: always a new one, since the old one is kept as a hash and cannot be shown again.
pub async fn create_connection_string(
    principal: &Principal,
    hub: &Hub,
    public_url: &str,
) -> Result<ConnectionCreated> {
    let id = principal.require_agent()?.id;
    let secret = clock::new_secret("sk_");
    let secret_hash = hash_secret(secret.expose());
    hub.store()
        .write(async move |txn| {
            principals::find_agent(&txn.tx, id)
                .await?
                .ok_or(Code::Unauthorized)?;
            Ok(
                connection_strings::set_connection_string(&txn.tx, id, &secret_hash, txn.now())
                    .await?,
            )
        })
        .await?;
    let url = format!(
        "{}/inbox/{}",
        public_url.trim_end_matches('/'),
        secret.expose()
    );
    Ok(ConnectionCreated {
        connection_string: Secret::new(url),
    })
}

/// `DELETE /agent/connection`: nobody reaches this agent by one any more.
pub async fn revoke_connection_string(
    principal: &Principal,
    hub: &Hub,
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

/// An agent as a service sees it: a place to put deliveries, and nothing that tells who it is.
#[derive(Clone, Debug)]
pub struct HostedInbox {
    agent: i64,
    secret_hash: [u8; 32],
}

impl HostedInbox {
    /// The one that this secret opens. Dead, rotated and never made are the same answer after the same look-up.
    pub async fn find(hub: &Hub, secret: &Secret) -> Result<Self> {
        let secret_hash = hash_secret(secret.expose());
        let agent = hub
            .store()
            .read(async move |tx| {
                Ok(connection_strings::find_agent_by_hash(tx, &secret_hash).await?)
            })
            .await?;
        Ok(Self {
            agent: agent.ok_or(Code::NotFound)?,
            secret_hash,
        })
    }

    /// Tells one from another, for whoever counts.
    pub fn agent_row_id(&self) -> i64 {
        self.agent
    }

    /// `POST /inbox/{sk_…}`: on the agent's inbox, body intact, or known already.
    pub async fn accept_delivery(
        &self,
        hub: &Hub,
        delivery: &ChannelDelivery,
        body: &str,
    ) -> Result<()> {
        let (secret_hash, delivery_hash, body) = (
            self.secret_hash,
            hash_delivery_ids(delivery),
            Arc::<str>::from(join_lines(body)),
        );
        hub.store()
            .write(async move |txn| {
                // Asked again here: a rotation that came between is a rotation (CHN-04).
                let agent = connection_strings::find_agent_by_hash(&txn.tx, &secret_hash)
                    .await?
                    .ok_or(Code::NotFound)?;
                if connection_strings::record_first_delivery(
                    &txn.tx,
                    agent,
                    &delivery_hash,
                    txn.now(),
                )
                .await?
                {
                    txn.append_entry(NewLogEntry {
                        subject: agent,
                        subject_name: "".into(),
                        kind: EntryKind::Channel,
                        actor: log::HUB_SUBJECT,
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

/// What a repeated delivery is known by. The length in front keeps `a`+`bc` and `ab`+`c` apart.
fn hash_delivery_ids(delivery: &ChannelDelivery) -> [u8; 32] {
    let (channel, message) = (&delivery.channel.id, &delivery.message.id);
    let mut hasher = Sha256::new();
    hasher.update((channel.len() as u64).to_be_bytes());
    hasher.update(channel.as_bytes());
    hasher.update(message.as_bytes());
    hasher.finalize().into()
}

/// An event's data is one line. In JSON a raw line break can only stand between tokens, so leaving it out changes nothing.
fn join_lines(body: &str) -> String {
    body.trim().replace(['\n', '\r'], "")
}
