//! Announcements to all peers and requests to one of them.

use super::bus_connection::{BusConnection, InboundMessage, UnsignedMessage, UnsignedSubscription};
use super::lock_mutex;
use super::membership::PeerTable;
use super::message_auth::MessageKind;
use super::protocol::{
    FrameQuery, HubId, PeerAnnouncement, PeerRequest, SharedSettings, decode_message,
    encode_message,
};
use crate::bus::RequestError;
use crate::limits;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::try_join_all;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// After a reconnect, the time until every peer has sent a heartbeat again: two heartbeats.
const RECONNECT_GRACE: Duration = Duration::from_secs(1);

/// The NATS subject of announcements to all hubs.
pub(super) const ANNOUNCEMENT_SUBJECT: &str = "all";
/// The NATS subject on which a starting hub asks for the settings of the others, without authentication. Hubs of all
/// versions use this spelling (D-94).
pub(super) const SETTINGS_SUBJECT: &str = "alike";

/// The connection of this hub, and the peers that it knows.
pub(super) struct PeerClient {
    pub hub_id: HubId,
    pub peers: PeerTable,
    /// Set once, when the cluster is joined.
    nats: OnceLock<Arc<BusConnection>>,
    /// The number of the current connection, and when it was first seen.
    last_connect: Mutex<(u64, Instant)>,
}

impl PeerClient {
    pub fn new() -> Self {
        Self {
            hub_id: crate::random::random_value(),
            peers: PeerTable::default(),
            nats: OnceLock::new(),
            last_connect: Mutex::new((0, Instant::now())),
        }
    }

    pub fn set_connection(&self, nats: Arc<BusConnection>) {
        let _ = self.nats.set(nats);
    }

    pub fn nats(&self) -> Option<&Arc<BusConnection>> {
        self.nats.get()
    }

    /// The NATS subject of requests to this hub.
    pub fn own_subject(&self) -> String {
        hub_subject(self.hub_id)
    }

    pub fn is_connected(&self) -> bool {
        self.nats().is_some_and(|nats| nats.is_connected())
    }

    /// Changes with every connect; `None` before the cluster is joined.
    pub fn watch_connects(&self) -> Option<watch::Receiver<u64>> {
        self.nats().map(|nats| nats.watch_connects())
    }

    /// False for a moment after a reconnect: a peer that lost its connection too may not be back yet, so that it is not gone.
    pub fn is_settled(&self) -> bool {
        let connect_count = self.watch_connects().map_or(0, |count| *count.borrow());
        let mut last_connect = lock_mutex(&self.last_connect);
        if last_connect.0 != connect_count {
            *last_connect = (connect_count, Instant::now());
        }
        // The first connection is made before any request, and the answers to its announcement come at once.
        connect_count <= 1 || last_connect.1.elapsed() >= RECONNECT_GRACE
    }

    pub async fn announce(&self, announcement: &PeerAnnouncement) {
        if let Some(nats) = self.nats() {
            let payload = encode_message(announcement);
            nats.publish(MessageKind::Announcement, ANNOUNCEMENT_SUBJECT, &payload)
                .await;
        }
    }

    pub async fn announce_leave(&self) {
        self.announce(&PeerAnnouncement::Gone(self.hub_id)).await;
        if let Some(nats) = self.nats() {
            nats.flush().await;
        }
    }

    /// Sends to one peer without waiting for an answer.
    pub async fn publish_to(&self, hub: HubId, payload: Bytes) {
        if let Some(nats) = self.nats() {
            nats.publish(MessageKind::Request, &hub_subject(hub), &payload)
                .await;
        }
    }

    pub async fn send_reply(&self, message: &InboundMessage, payload: Bytes) {
        if let Some(nats) = self.nats() {
            nats.send_reply(message, &payload).await;
        }
    }

    /// Tells a hub that starts, with whichever seal key, the settings of this one.
    pub async fn send_settings(&self, question: &UnsignedMessage, settings: &SharedSettings) {
        if let Some(nats) = self.nats() {
            nats.send_unsigned_reply(question, encode_message(settings))
                .await;
        }
    }

    /// The answer of a peer. A peer without a subscription is removed at once, except just after a reconnect.
    pub async fn request_peer(&self, hub: HubId, payload: Bytes) -> Result<Bytes, RequestError> {
        self.request_within(hub, payload, limits::PEER_REQUEST_TIMEOUT)
            .await
    }

    pub async fn request_within(
        &self,
        hub: HubId,
        payload: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, RequestError> {
        let nats = self.nats().ok_or(RequestError::Timeout)?;
        match nats.request(&hub_subject(hub), &payload, timeout).await {
            Err(RequestError::NoResponders) if self.is_settled() => {
                self.peers.remove_peer(hub);
                Err(RequestError::NoResponders)
            }
            Err(RequestError::NoResponders) => Err(RequestError::Timeout),
            answer => answer,
        }
    }

    /// The answers of all peers. A peer that does not answer is asked again until it answers or is removed; when neither happens
    /// in time, the whole query fails, because a partial answer would be wrong (D-93).
    pub async fn query_all_peers<T>(
        &self,
        query: FrameQuery,
        parse: impl Fn(&[u8]) -> Option<T> + Copy,
    ) -> Result<Vec<(HubId, T)>, RequestError> {
        let deadline = Instant::now() + limits::PEER_COUNT_TIMEOUT;
        while !self.is_settled() {
            if !self.is_connected() || Instant::now() >= deadline {
                return Err(RequestError::Timeout);
            }
            tokio::time::sleep(limits::PEER_RETRY_INTERVAL).await;
        }
        if !self.is_connected() {
            return Err(RequestError::Timeout);
        }
        let payload = encode_message(&PeerRequest::QueryFrames(query));
        let requests = self
            .peers
            .peer_ids()
            .into_iter()
            .map(|hub| self.query_until(hub, payload.clone(), deadline, parse));
        Ok(try_join_all(requests)
            .await?
            .into_iter()
            .flatten()
            .collect())
    }

    /// The answer of one peer, asked again until it answers.
    pub async fn query_peer<T>(
        &self,
        hub: HubId,
        query: FrameQuery,
        parse: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<T, RequestError> {
        let payload = encode_message(&PeerRequest::QueryFrames(query));
        let deadline = Instant::now() + limits::PEER_COUNT_TIMEOUT;
        let answer = self.query_until(hub, payload, deadline, parse).await?;
        answer
            .map(|(_, answer)| answer)
            .ok_or(RequestError::NoResponders)
    }

    /// `None` when the peer was removed meanwhile.
    async fn query_until<T>(
        &self,
        hub: HubId,
        payload: Bytes,
        deadline: Instant,
        parse: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<Option<(HubId, T)>, RequestError> {
        loop {
            let answer = self.request_peer(hub, payload.clone()).await;
            if let Some(parsed) = answer.ok().and_then(|answer| parse(&answer)) {
                return Ok(Some((hub, parsed)));
            }
            if !self.is_connected() || Instant::now() >= deadline {
                return Err(RequestError::Timeout);
            }
            if !self.peers.has_peer(hub) {
                return Ok(None);
            }
            tokio::time::sleep(limits::PEER_RETRY_INTERVAL).await;
        }
    }

    /// D-87: the hubs of another seal key do not hear this one, nor it them, so they are asked without authentication, and `answers`
    /// has what came until now. A forged answer can only keep a hub from starting.
    pub fn check_seal_key(
        own: &SharedSettings,
        answers: &mut UnsignedSubscription,
    ) -> Result<(), String> {
        while let Some(answer) = answers.next_message().now_or_never().flatten() {
            let theirs = decode_message::<SharedSettings>(&answer.payload);
            if let Some(setting) = theirs.and_then(|theirs| own.find_difference(&theirs)) {
                return Err(describe_difference(setting));
            }
        }
        Ok(())
    }

    /// D-87: a hub whose settings differ could not read what its peers write, so it does not start.
    pub async fn check_shared_settings(&self, own: &SharedSettings) -> Result<(), String> {
        for hub in self.peers.peer_ids() {
            // A peer that is too old for this request answers nothing, and is assumed to have the same settings.
            let answer = self
                .request_peer(hub, encode_message(&PeerRequest::ReadSettings))
                .await
                .unwrap_or_default();
            if let Some(setting) = decode_message::<SharedSettings>(&answer)
                .and_then(|theirs| own.find_difference(&theirs))
            {
                return Err(describe_difference(setting));
            }
        }
        Ok(())
    }
}

fn describe_difference(setting: &str) -> String {
    format!("a hub that is already running on this database has another {setting}")
}

fn hub_subject(hub: HubId) -> String {
    format!("hub.{hub:016x}")
}
