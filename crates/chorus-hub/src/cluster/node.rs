//! The bus of a hub among others that share its database. Each hub reads the log by itself and tells its own streams, in its
//! order; what hubs say to one another only makes them look at once, and tells who took what (D-80).

mod budget_sync;
mod log_follower;
mod presence_sync;

use super::nats::{InboundMessage, NatsConnection, NatsSubscription, RequestError};
use super::protocol::{
    FrameQuery, HubId, PeerAnnouncement, PeerRequest, SharedSettings, decode_message,
    encode_message,
};
use super::{HubCallbacks, membership};
use crate::delivery::LocalStreams;
use crate::settings::BusFiles;
use bytes::Bytes;
use chorus_wire::{limits, secret::Secret};
use futures_util::future::{join_all, try_join_all};
use presence_sync::{OwnPresence, PendingChanges};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long after the bus was away it takes until every hub has said again that it is there: two beats.
const RECONNECT_GRACE: Duration = Duration::from_secs(1);
/// Entries of other hubs of which it is remembered that a stream here took them: many groups of all of them.
const MAX_ACCEPTED_SEQS: usize = 16_384;

pub(crate) struct ClusterNode {
    weak_self: Weak<ClusterNode>,
    hub_id: HubId,
    live_streams: LocalStreams,
    nats: OnceLock<Arc<NatsConnection>>,
    callbacks: OnceLock<Box<dyn HubCallbacks>>,
    pub(super) peers: membership::PeerTable,
    /// Open inboxes here, by their subject.
    inbox_counts: Mutex<HashMap<i64, u32>>,
    own_presence: Mutex<OwnPresence>,
    pending_changes: Mutex<PendingChanges>,
    change_wakeup: Notify,
    synced_changes: watch::Sender<u64>,
    log_wakeup: Notify,
    /// Rung when the memory that hubs share may not be the one that is read.
    pub(super) recheck_wakeup: Notify,
    /// Places for questions that wait here (law 6).
    answer_permits: Arc<Semaphore>,
    /// Which connection to the bus was last seen, and since when.
    last_connect: Mutex<(u64, Instant)>,
    /// Up to where the log is known here, and since when.
    followed_seq: watch::Sender<i64>,
    followed_at: Mutex<Instant>,
    accepted_seqs: Mutex<VecDeque<i64>>,
    claim_queues: budget_sync::ClaimQueues,
    tasks: Mutex<JoinSet<()>>,
}

fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ClusterNode {
    pub fn new() -> Arc<Self> {
        Arc::new_cyclic(|weak_self| Self {
            weak_self: weak_self.clone(),
            hub_id: rand::random(),
            live_streams: LocalStreams::new(),
            nats: OnceLock::new(),
            callbacks: OnceLock::new(),
            peers: membership::PeerTable::default(),
            inbox_counts: Mutex::default(),
            own_presence: Mutex::default(),
            pending_changes: Mutex::default(),
            change_wakeup: Notify::new(),
            synced_changes: watch::Sender::new(0),
            log_wakeup: Notify::new(),
            recheck_wakeup: Notify::new(),
            answer_permits: Arc::new(Semaphore::new(limits::PEER_REQUESTS_WAITING)),
            last_connect: Mutex::new((0, Instant::now())),
            followed_seq: watch::Sender::new(0),
            followed_at: Mutex::new(Instant::now()),
            accepted_seqs: Mutex::default(),
            claim_queues: budget_sync::ClaimQueues::default(),
            tasks: Mutex::default(),
        })
    }

    pub fn init_from_store(&self, salt: u32, newest_seq: i64) {
        self.live_streams.init_from_store(salt, newest_seq);
        self.followed_seq
            .send_modify(|seq| *seq = newest_seq.max(*seq));
    }

    /// Joins the other hubs of this database.
    pub async fn join_cluster(
        &self,
        access: (&Secret, &BusFiles),
        salt: u32,
        callbacks: Box<dyn HubCallbacks>,
    ) -> Result<(), String> {
        let nats = Arc::new(
            NatsConnection::connect(access.0, access.1, format!("chorus.{salt:06x}")).await?,
        );
        let (broadcasts, own_requests) = (
            nats.subscribe("all").await?,
            nats.subscribe(&hub_subject(self.hub_id)).await?,
        );
        let _ = self.callbacks.set(callbacks);
        let _ = self.nats.set(nats.clone());
        self.start_frame_consumer(&nats).await?;
        self.spawn_task(Self::receive_messages, (broadcasts, own_requests));
        self.spawn_task(Self::send_deltas, ());
        self.spawn_task(Self::run_heartbeat, nats.watch_connects());
        if let Some(budgets) = self.hub_callbacks().and_then(HubCallbacks::rate_budgets) {
            self.spawn_task(Self::sync_budgets, budgets);
        }
        self.discover_peers().await;
        self.check_shared_settings().await
    }

    /// D-87: a hub that could not read what those beside it write does not begin to write.
    async fn check_shared_settings(&self) -> Result<(), String> {
        let own_settings = self
            .hub_callbacks()
            .map(HubCallbacks::shared_settings)
            .unwrap_or_default();
        for hub in self.peers.peer_ids() {
            // One that is too old to know the question says nothing, and is believed to be alike.
            let answer = self
                .request_peer(hub, encode_message(&PeerRequest::Alike))
                .await
                .unwrap_or_default();
            if let Some(setting) = decode_message::<SharedSettings>(&answer)
                .and_then(|theirs| own_settings.find_difference(&theirs))
            {
                return Err(format!(
                    "a hub that is already running on this database has another {setting}"
                ));
            }
        }
        Ok(())
    }

    /// Runs for as long as the hub is there.
    pub(super) fn spawn_task<T, F>(&self, work: impl FnOnce(Weak<ClusterNode>, T) -> F, args: T)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        lock_mutex(&self.tasks).spawn(work(self.weak_self.clone(), args));
    }

    /// Does something while others are heard; whoever calls it knows how many of these there are at once.
    fn spawn_detached(&self, work: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(work);
    }

    /// Answers when there is something to say, while others are heard. Who finds no place to wait is told so at once.
    async fn spawn_reply<F>(
        &self,
        message: InboundMessage,
        work: impl FnOnce(Weak<ClusterNode>) -> F,
    ) where
        F: Future<Output = Bytes> + Send + 'static,
    {
        let (Some(nats), Ok(permit)) = (
            self.nats().cloned(),
            self.answer_permits.clone().try_acquire_owned(),
        ) else {
            return self.send_reply(&message, Bytes::new()).await;
        };
        let work = work(self.weak_self.clone());
        tokio::spawn(async move {
            let answer = tokio::time::timeout(limits::PEER_REQUEST_TIMEOUT, work)
                .await
                .unwrap_or_default();
            nats.send_reply(&message, answer).await;
            drop(permit);
        });
    }

    async fn send_reply(&self, message: &InboundMessage, payload: Bytes) {
        if let Some(nats) = self.nats() {
            nats.send_reply(message, payload).await;
        }
    }

    pub(super) fn nats(&self) -> Option<&Arc<NatsConnection>> {
        self.nats.get()
    }

    pub(super) fn hub_callbacks(&self) -> Option<&dyn HubCallbacks> {
        self.callbacks.get().map(|callbacks| &**callbacks)
    }

    /// Whether the other hubs can be reached.
    pub fn is_connected(&self) -> bool {
        self.nats().is_some_and(|nats| nats.is_connected())
    }

    /// False for a moment after the bus was away: whoever else it was away for may not be back yet.
    fn is_settled(&self) -> bool {
        let connect_count = self
            .nats()
            .map_or(0, |nats| *nats.watch_connects().borrow());
        let mut last_connect = lock_mutex(&self.last_connect);
        if last_connect.0 != connect_count {
            *last_connect = (connect_count, Instant::now());
        }
        // The first one is made before there is anything to be claimed, and the others say at once that they are there.
        connect_count <= 1 || last_connect.1.elapsed() >= RECONNECT_GRACE
    }

    /// How many other hubs are known.
    pub fn peer_count(&self) -> usize {
        self.peers.peer_ids().len()
    }

    /// Frame sessions of a principal at other hubs.
    pub fn remote_session_count(&self, principal: i64) -> usize {
        self.peers.session_count(principal)
    }

    async fn announce(&self, announcement: &PeerAnnouncement) {
        if let Some(nats) = self.nats() {
            nats.publish("all", encode_message(announcement)).await;
        }
    }

    /// What a hub answers. One that is not there any more is forgotten at once; but when the bus itself was away, whoever is
    /// not there yet may be about to come back.
    async fn request_peer(&self, hub: HubId, payload: Bytes) -> Result<Bytes, RequestError> {
        self.request_within(hub, payload, limits::PEER_REQUEST_TIMEOUT)
            .await
    }

    async fn request_within(
        &self,
        hub: HubId,
        payload: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, RequestError> {
        let nats = self.nats().ok_or(RequestError::Timeout)?;
        match nats.request(&hub_subject(hub), payload, timeout).await {
            Err(RequestError::NoResponders) if self.is_settled() => {
                self.peers.remove_peer(hub);
                Err(RequestError::NoResponders)
            }
            Err(RequestError::NoResponders) => Err(RequestError::Timeout),
            answer => answer,
        }
    }

    /// What the same room of every other hub answers. Nobody is left out who is there: one that does not answer is asked until
    /// it does or is gone, and when it is neither, nothing is claimed (D-93).
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
        let payload = encode_message(&PeerRequest::Room(query));
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

    /// What one of them answers when it is asked on.
    pub async fn query_peer<T>(
        &self,
        hub: HubId,
        query: FrameQuery,
        parse: impl Fn(&[u8]) -> Option<T>,
    ) -> Result<T, RequestError> {
        let answer = self
            .query_until(
                hub,
                encode_message(&PeerRequest::Room(query)),
                Instant::now() + limits::PEER_COUNT_TIMEOUT,
                parse,
            )
            .await?;
        answer
            .map(|(_, answer)| answer)
            .ok_or(RequestError::NoResponders)
    }

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

    async fn receive_messages(
        weak_node: Weak<ClusterNode>,
        (mut broadcasts, mut own_requests): (NatsSubscription, NatsSubscription),
    ) {
        loop {
            let (message, is_request) = tokio::select! {
                message = broadcasts.next_message() => (message, false),
                message = own_requests.next_message() => (message, true),
            };
            let (Some(message), Some(node)) = (message, weak_node.upgrade()) else {
                return;
            };
            if is_request {
                node.handle_request(message).await;
            } else if let Some(announcement) = decode_message(&message.payload) {
                node.handle_announcement(announcement);
            }
        }
    }

    fn handle_announcement(&self, announcement: PeerAnnouncement) {
        match announcement {
            PeerAnnouncement::Here(heartbeat) if heartbeat.hub != self.hub_id => {
                let known = self.peers.has_peer(heartbeat.hub);
                if self.peers.apply_heartbeat(heartbeat) && self.peers.begin_sync(heartbeat.hub) {
                    self.spawn_detached(Self::sync_peer(
                        self.weak_self.clone(),
                        heartbeat.hub,
                        known,
                    ));
                }
            }
            PeerAnnouncement::Gone(hub) => self.peers.remove_peer(hub),
            PeerAnnouncement::Grew(hub, log_seq)
                if hub != self.hub_id && log_seq > *self.followed_seq.borrow() =>
            {
                self.log_wakeup.notify_one()
            }
            PeerAnnouncement::Spent(hub, debts) if hub != self.hub_id => self.apply_debts(&debts),
            PeerAnnouncement::Here(_)
            | PeerAnnouncement::Grew(..)
            | PeerAnnouncement::Spent(..) => {}
        }
    }

    async fn handle_request(&self, message: InboundMessage) {
        match decode_message(&message.payload) {
            Some(PeerRequest::News(delta)) if self.peers.has_peer(delta.hub) => {
                self.apply_delta(delta);
                self.send_reply(&message, Bytes::new()).await;
            }
            // It waits until it is known: then whoever comes to it is counted by everybody.
            Some(PeerRequest::News(delta)) => {
                self.spawn_reply(message, |weak_node| Self::sync_then_apply(weak_node, delta))
                    .await
            }
            Some(PeerRequest::Places(_, after)) => {
                let page = lock_mutex(&self.own_presence).build_page(after);
                self.send_reply(&message, encode_message(&page)).await;
            }
            Some(PeerRequest::Heard(after)) => {
                let page = self
                    .hub_callbacks()
                    .map(|callbacks| callbacks.list_agents_seen(after, limits::PEER_MESSAGE_ITEMS))
                    .unwrap_or_default();
                self.send_reply(&message, encode_message(&page)).await;
            }
            Some(PeerRequest::Alike) => {
                let settings = self
                    .hub_callbacks()
                    .map(HubCallbacks::shared_settings)
                    .unwrap_or_default();
                self.send_reply(&message, encode_message(&settings)).await;
            }
            Some(PeerRequest::Spend(claims)) => {
                self.send_reply(&message, encode_message(&self.decide_claims(&claims)))
                    .await
            }
            // Those wait, and nobody else for them.
            Some(PeerRequest::Took {
                upto: log_seq,
                seqs,
            }) => {
                self.spawn_reply(message, |weak_node| {
                    Self::answer_accepted_seqs(weak_node, log_seq, seqs)
                })
                .await
            }
            Some(PeerRequest::Room(query)) => {
                self.spawn_reply(message, |weak_node| {
                    Self::answer_frame_query(weak_node, query)
                })
                .await
            }
            // A newer hub's: it need not wait to learn that it gets no answer.
            None => self.send_reply(&message, Bytes::new()).await,
        }
    }

    async fn answer_accepted_seqs(
        weak_node: Weak<ClusterNode>,
        log_seq: i64,
        seqs: Vec<i64>,
    ) -> Bytes {
        let Some(node) = weak_node.upgrade() else {
            return Bytes::new();
        };
        let mut followed_seq = node.followed_seq.subscribe();
        if *followed_seq.borrow() < log_seq {
            node.log_wakeup.notify_one();
            let _ = followed_seq.wait_for(|seq| *seq >= log_seq).await;
        }
        let accepted_seqs = lock_mutex(&node.accepted_seqs);
        encode_message(
            &seqs
                .into_iter()
                .filter(|seq| accepted_seqs.binary_search(seq).is_ok())
                .collect::<Vec<i64>>(),
        )
    }

    async fn answer_frame_query(weak_node: Weak<ClusterNode>, query: FrameQuery) -> Bytes {
        let Some(node) = weak_node.upgrade() else {
            return Bytes::new();
        };
        match node.hub_callbacks() {
            Some(callbacks) => callbacks.answer_frame_query(query).await,
            None => Bytes::new(),
        }
    }

    /// Leaves: the others expect nothing more of this hub.
    pub async fn leave_cluster(&self) {
        // First: nothing that is still under way may say that this hub is there.
        lock_mutex(&self.tasks).abort_all();
        self.announce(&PeerAnnouncement::Gone(self.hub_id)).await;
        if let Some(nats) = self.nats() {
            nats.flush().await;
        }
    }

    /// Which of these entries streams of other hubs took. Those hubs have then forgotten what the entries say is over.
    async fn request_accepted_seqs(
        &self,
        log_seq: i64,
        seqs_by_hub: HashMap<HubId, Vec<i64>>,
    ) -> Vec<i64> {
        self.announce(&PeerAnnouncement::Grew(self.hub_id, log_seq))
            .await;
        let requests = seqs_by_hub.into_iter().map(|(hub, seqs)| {
            self.request_peer(
                hub,
                encode_message(&PeerRequest::Took {
                    upto: log_seq,
                    seqs,
                }),
            )
        });
        let answers = join_all(requests).await;
        answers
            .into_iter()
            .flatten()
            .filter_map(|answer| decode_message::<Vec<i64>>(&answer))
            .flatten()
            .collect()
    }
}

fn hub_subject(hub: HubId) -> String {
    format!("hub.{hub:016x}")
}
