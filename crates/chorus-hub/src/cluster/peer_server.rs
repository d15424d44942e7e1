//! Receives the announcements and requests of peers and hands each to the part that it concerns.

use super::budget_sync::BudgetSync;
use super::bus_connection::{
    BusSubscription, InboundMessage, UnsignedMessage, UnsignedSubscription,
};
use super::frame_stream::RegisteredFrames;
use super::log_follower::LogFollower;
use super::membership::Membership;
use super::peer_client::PeerClient;
use super::protocol::{
    FrameQuery, PeerAnnouncement, PeerRequest, SharedSettings, decode_message, encode_message,
};
use crate::limits;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use std::sync::Arc;
use tokio::sync::Semaphore;

pub(super) struct PeerServer {
    client: Arc<PeerClient>,
    membership: Arc<Membership>,
    log_follower: Arc<LogFollower>,
    budget_sync: Arc<BudgetSync>,
    registered_frames: RegisteredFrames,
    settings: SharedSettings,
    /// Requests whose answer waits for something (invariant 6).
    answer_permits: Arc<Semaphore>,
}

/// What arrives from the bus.
enum InboundItem {
    Announcement(InboundMessage),
    Request(InboundMessage),
    Question(UnsignedMessage),
    /// The connection is closed for good.
    Closed,
}

impl PeerServer {
    pub fn new(
        client: Arc<PeerClient>,
        membership: Arc<Membership>,
        log_follower: Arc<LogFollower>,
        budget_sync: Arc<BudgetSync>,
        registered_frames: RegisteredFrames,
        settings: SharedSettings,
    ) -> Self {
        Self {
            client,
            membership,
            log_follower,
            budget_sync,
            registered_frames,
            settings,
            answer_permits: Arc::new(Semaphore::new(limits::PEER_REQUESTS_WAITING)),
        }
    }

    /// Receives messages until the connection is closed for good.
    pub async fn run(
        self: Arc<Self>,
        broadcasts: BusSubscription,
        own_requests: BusSubscription,
        settings_questions: UnsignedSubscription,
    ) {
        let closed = || stream::iter([InboundItem::Closed]);
        let broadcasts = broadcasts.into_messages().map(InboundItem::Announcement);
        let own_requests = own_requests.into_messages().map(InboundItem::Request);
        let questions = settings_questions
            .into_messages()
            .map(InboundItem::Question);
        // They take turns, so that none waits for the others; by chance, a simulation would not repeat (D-110).
        let messages = stream::select(broadcasts.chain(closed()), own_requests.chain(closed()));
        let mut items = std::pin::pin!(stream::select(messages, questions.chain(closed())));
        while let Some(item) = items.next().await {
            match item {
                InboundItem::Announcement(message) => {
                    if let Some(announcement) = decode_message(&message.payload) {
                        self.handle_announcement(announcement);
                    }
                }
                InboundItem::Request(message) => self.handle_request(message).await,
                InboundItem::Question(question) => {
                    self.client.send_settings(&question, &self.settings).await;
                }
                InboundItem::Closed => return,
            }
        }
    }

    fn handle_announcement(&self, announcement: PeerAnnouncement) {
        let own_id = self.client.hub_id;
        match announcement {
            PeerAnnouncement::Here(heartbeat) if heartbeat.hub != own_id => {
                self.membership.handle_heartbeat(heartbeat)
            }
            PeerAnnouncement::Gone(hub) => self.client.peers.remove_peer(hub),
            PeerAnnouncement::Grew(hub, log_seq) if hub != own_id => {
                self.log_follower.handle_growth(log_seq)
            }
            PeerAnnouncement::Spent(hub, debts) if hub != own_id => {
                self.budget_sync.apply_debts(&debts)
            }
            PeerAnnouncement::Here(_)
            | PeerAnnouncement::Grew(..)
            | PeerAnnouncement::Spent(..) => {}
        }
    }

    async fn handle_request(&self, message: InboundMessage) {
        let answer = match decode_message(&message.payload) {
            Some(PeerRequest::ApplyDelta(delta)) if self.client.peers.has_peer(delta.hub) => {
                self.membership.apply_delta(delta);
                Bytes::new()
            }
            // An unknown peer waits for its answer until it is known: then its streams count at every hub.
            Some(PeerRequest::ApplyDelta(delta)) => {
                let membership = self.membership.clone();
                return self
                    .spawn_reply(message, async move {
                        membership.sync_then_apply(delta).await;
                        Bytes::new()
                    })
                    .await;
            }
            Some(PeerRequest::ListPresence(_, after)) => {
                encode_message(&self.membership.build_presence_page(after))
            }
            Some(PeerRequest::ListAgentsSeen(after)) => {
                encode_message(&self.membership.list_agents_seen(after))
            }
            Some(PeerRequest::ReadSettings) => encode_message(&self.settings),
            Some(PeerRequest::Spend(claims)) => {
                encode_message(&self.budget_sync.decide_claims(&claims))
            }
            Some(PeerRequest::AcceptedEntries { upto, seqs }) => {
                let log_follower = self.log_follower.clone();
                let answer = async move { log_follower.answer_accepted_seqs(upto, seqs).await };
                return self.spawn_reply(message, answer).await;
            }
            Some(PeerRequest::QueryFrames(query)) => {
                let frames = self.registered_frames.clone();
                return self
                    .spawn_reply(message, answer_frame_query(frames, query))
                    .await;
            }
            // A request that only a newer hub knows: an empty answer, so that the peer does not wait (D-94).
            None => Bytes::new(),
        };
        self.client.send_reply(&message, answer).await;
    }

    /// Replies when the answer is ready, while other messages are handled. Without a free permit the answer is empty at once.
    async fn spawn_reply(
        &self,
        message: InboundMessage,
        answer: impl Future<Output = Bytes> + Send + 'static,
    ) {
        let Ok(permit) = self.answer_permits.clone().try_acquire_owned() else {
            return self.client.send_reply(&message, Bytes::new()).await;
        };
        let client = self.client.clone();
        tokio::spawn(async move {
            let answer = tokio::time::timeout(limits::PEER_REQUEST_TIMEOUT, answer)
                .await
                .unwrap_or_default();
            client.send_reply(&message, answer).await;
            drop(permit);
        });
    }
}

async fn answer_frame_query(frames: RegisteredFrames, query: FrameQuery) -> Bytes {
    match frames.handler() {
        Some(handler) => handler.answer_query(query).await,
        None => Bytes::new(),
    }
}
