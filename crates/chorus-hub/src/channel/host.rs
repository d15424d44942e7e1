//! The agent host: an agent behind a firewall gets one URL, and what services post there is on its inbox.

use crate::identity::hash;
use crate::store::{Kind, NewEntry, connections, log, principals};
use crate::{Hub, Principal, Result, clock};
use chorus_wire::channel::connection::{Connection, Revoked};
use chorus_wire::channel::delivery::Delivery;
use chorus_wire::{Code, secret::Secret};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// `POST /agent/connection`: always a new one, since the old one is kept as a hash and cannot be shown again.
pub async fn connect(who: &Principal, hub: &Hub, public_url: &str) -> Result<Connection> {
    let id = who.agent()?.id;
    let secret = clock::new_secret("sk_");
    let hashed = hash(secret.expose());
    hub.store()
        .write(async move |txn| {
            principals::by_id(&txn.tx, id)
                .await?
                .ok_or(Code::Unauthorized)?;
            Ok(connections::put(&txn.tx, id, &hashed, txn.now()).await?)
        })
        .await?;
    let url = format!(
        "{}/inbox/{}",
        public_url.trim_end_matches('/'),
        secret.expose()
    );
    Ok(Connection {
        connection_string: Secret::new(url),
    })
}

/// `DELETE /agent/connection`: nobody reaches this agent by one any more.
pub async fn disconnect(who: &Principal, hub: &Hub) -> Result<Revoked> {
    let id = who.agent()?.id;
    let revoked = hub
        .store()
        .write(async move |txn| Ok(connections::revoke(&txn.tx, id).await?))
        .await?;
    Ok(Revoked { revoked })
}

/// An agent as a service sees it: a place to put deliveries, and nothing that tells who it is.
#[derive(Clone, Debug)]
pub struct Letterbox {
    agent: i64,
    hash: [u8; 32],
}

impl Letterbox {
    /// The one that this secret opens. Dead, rotated and never made are the same answer after the same look-up.
    pub async fn find(hub: &Hub, secret: &Secret) -> Result<Self> {
        let hash = hash(secret.expose());
        let agent = hub
            .store()
            .read(async move |tx| Ok(connections::whose(tx, &hash).await?))
            .await?;
        Ok(Self {
            agent: agent.ok_or(Code::NotFound)?,
            hash,
        })
    }

    /// Tells one from another, for whoever counts.
    pub fn number(&self) -> i64 {
        self.agent
    }

    /// `POST /inbox/{sk_…}`: on the agent's inbox, body intact, or known already.
    pub async fn put(&self, hub: &Hub, delivery: &Delivery, body: &str) -> Result<()> {
        let (hash, pair, body) = (self.hash, pair(delivery), Arc::<str>::from(one_line(body)));
        hub.store()
            .write(async move |txn| {
                // Asked again here: a rotation that came between is a rotation (CHN-04).
                let agent = connections::whose(&txn.tx, &hash)
                    .await?
                    .ok_or(Code::NotFound)?;
                if connections::first(&txn.tx, agent, &pair, txn.now()).await? {
                    txn.append(NewEntry {
                        subject: agent,
                        subject_name: "".into(),
                        kind: Kind::Channel,
                        actor: log::HUB,
                        actor_name: "".into(),
                        body: body.clone(),
                        otherwise: None,
                    });
                }
                Ok(())
            })
            .await
    }
}

/// What a repeated delivery is known by. The length in front keeps `a`+`bc` and `ab`+`c` apart.
fn pair(delivery: &Delivery) -> [u8; 32] {
    let (channel, message) = (&delivery.channel.id, &delivery.message.id);
    let mut sum = Sha256::new();
    sum.update((channel.len() as u64).to_be_bytes());
    sum.update(channel.as_bytes());
    sum.update(message.as_bytes());
    sum.finalize().into()
}

/// An event's data is one line. In JSON a raw line break can only stand between tokens, so leaving it out changes nothing.
fn one_line(body: &str) -> String {
    body.trim().replace(['\n', '\r'], "")
}
