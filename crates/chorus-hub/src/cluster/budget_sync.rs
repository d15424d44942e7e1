//! Budget sync: hubs exchange what callers have spent, and near the end of a budget one hub decides for all (D-85).

use super::lock_mutex;
use super::peer_client::PeerClient;
use super::protocol::{HubId, PeerAnnouncement, PeerRequest, decode_message, encode_message};
use crate::bus::RequestError;
use crate::identity::rate_limit::{
    BudgetAuthority, BudgetClaim, BudgetDecision, BudgetOwner, CallerId, ClaimError, RateBudgets,
};
use crate::limits;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

/// The pause between two reports of what was spent; spending meanwhile goes into one report.
const SYNC_INTERVAL: Duration = Duration::from_millis(20);
/// How long a hub that did not answer is not asked again, so that further requests do not wait for it.
const SILENT_HUB_PAUSE: Duration = Duration::from_secs(1);

type DecisionResult = Result<BudgetDecision, RequestError>;

/// Claims that wait for the decision of one peer.
#[derive(Default)]
struct ClaimQueue {
    waiting: Vec<(BudgetClaim, oneshot::Sender<DecisionResult>)>,
    /// A request is in flight: claims meanwhile go into the next one.
    is_sending: bool,
    paused_until: Option<Instant>,
}

#[derive(Default)]
struct ClaimQueues(Mutex<HashMap<HubId, ClaimQueue>>);

impl ClaimQueues {
    /// Enqueues a claim. Returns where its decision arrives, and whether the caller must start sending; `None` when the peer is
    /// paused or the queue is full.
    fn enqueue_claim(
        &self,
        hub: HubId,
        claim: BudgetClaim,
        now: Instant,
    ) -> Option<(oneshot::Receiver<DecisionResult>, bool)> {
        let mut queues = lock_mutex(&self.0);
        queues.retain(|_, queue| queue.is_sending || queue.paused_until.is_some_and(|at| at > now));
        let queue = queues.entry(hub).or_default();
        if queue.paused_until.is_some_and(|at| at > now)
            || queue.waiting.len() >= limits::BUDGET_REQUESTS_WAITING
        {
            return None;
        }
        let (reply, decision) = oneshot::channel();
        queue.waiting.push((claim, reply));
        Some((decision, !std::mem::replace(&mut queue.is_sending, true)))
    }

    /// The claims of the next request; sending ends when there are none.
    fn take_batch(&self, hub: HubId) -> Vec<(BudgetClaim, oneshot::Sender<DecisionResult>)> {
        let mut queues = lock_mutex(&self.0);
        let Some(queue) = queues.get_mut(&hub) else {
            return Vec::new();
        };
        queue.waiting.retain(|(_, reply)| !reply.is_closed());
        let batch_size = queue.waiting.len().min(limits::BUDGET_SYNC_CALLERS);
        let batch: Vec<_> = queue.waiting.drain(..batch_size).collect();
        queue.is_sending = !batch.is_empty();
        batch
    }

    /// The peer does not answer: claims that were not sent yet fail at once.
    fn pause_hub(&self, hub: HubId, now: Instant) {
        let mut queues = lock_mutex(&self.0);
        let queue = queues.entry(hub).or_default();
        queue.paused_until = Some(now + SILENT_HUB_PAUSE);
        for (_, reply) in queue.waiting.drain(..) {
            let _ = reply.send(Err(RequestError::NoResponders));
        }
    }
}

/// Reports what callers spend here, asks the deciding hubs, and decides about the callers of this one.
pub(super) struct BudgetSync {
    client: Arc<PeerClient>,
    budgets: Arc<RateBudgets>,
    claim_queues: Arc<ClaimQueues>,
}

impl BudgetAuthority for BudgetSync {
    fn budget_owner(&self, caller_hash: u64) -> Option<BudgetOwner> {
        let own_id = self.client.hub_id;
        let (hub, peer_count) = self.client.peers.select_owner(own_id, caller_hash)?;
        Some(BudgetOwner {
            remote_hub: Some(hub).filter(|hub| *hub != own_id),
            hub_count: peer_count + 1,
        })
    }

    fn request_decision(
        &self,
        hub: HubId,
        claim: BudgetClaim,
    ) -> BoxFuture<'_, Result<BudgetDecision, ClaimError>> {
        async move {
            let decision = self.send_claim(hub, claim).await;
            decision.map_err(|error| match error {
                RequestError::NoResponders => ClaimError::NotReceived,
                RequestError::Timeout => ClaimError::Unknown,
            })
        }
        .boxed()
    }
}

impl BudgetSync {
    pub fn new(client: Arc<PeerClient>, budgets: Arc<RateBudgets>) -> Self {
        Self {
            client,
            budgets,
            claim_queues: Arc::default(),
        }
    }

    /// The decision of a peer. `NoResponders` when the peer certainly has not counted the claim.
    async fn send_claim(&self, hub: HubId, claim: BudgetClaim) -> DecisionResult {
        let (decision, is_first) = self
            .claim_queues
            .enqueue_claim(hub, claim, Instant::now())
            .ok_or(RequestError::NoResponders)?;
        if is_first {
            let client = self.client.clone();
            tokio::spawn(send_claims(client, self.claim_queues.clone(), hub));
        }
        timeout(limits::BUDGET_SYNC_WAIT, decision)
            .await
            .ok()
            .and_then(Result::ok)
            .unwrap_or(Err(RequestError::Timeout))
    }

    /// Reports unsynced spending: to the deciding hub as a claim, and to all peers for callers that this hub decides about.
    pub async fn run(self: Arc<Self>) {
        loop {
            self.budgets.sync_wakeup.notified().await;
            let mut debts: Vec<(CallerId, u64)> = Vec::new();
            let mut claims: HashMap<HubId, Vec<BudgetClaim>> = HashMap::new();
            for (caller, owed, debt) in self.budgets.collect_unsynced() {
                match self
                    .budget_owner(caller.stable_hash())
                    .map(|owner| owner.remote_hub)
                {
                    Some(Some(hub)) => claims.entry(hub).or_default().push(BudgetClaim {
                        caller,
                        owed,
                        known: 0,
                        quota: 0,
                    }),
                    Some(None) => debts.push((caller, debt)),
                    None => {}
                }
            }
            self.report(&debts, &claims).await;
            tokio::time::sleep(SYNC_INTERVAL).await;
        }
    }

    /// A report that does not arrive only leaves a peer with an older debt (invariant 4).
    async fn report(&self, debts: &[(CallerId, u64)], claims: &HashMap<HubId, Vec<BudgetClaim>>) {
        for chunk in debts.chunks(limits::BUDGET_SYNC_CALLERS) {
            let announcement = PeerAnnouncement::Spent(self.client.hub_id, chunk.to_vec());
            self.client.announce(&announcement).await;
        }
        let chunks = claims.iter().flat_map(|(hub, claims)| {
            claims
                .chunks(limits::BUDGET_SYNC_CALLERS)
                .map(move |chunk| (*hub, chunk))
        });
        join_all(chunks.map(|(hub, chunk)| {
            let request = PeerRequest::Spend(chunk.to_vec());
            self.client
                .request_within(hub, encode_message(&request), limits::BUDGET_SYNC_WAIT)
        }))
        .await;
    }

    /// Decides about the claims of a peer.
    pub fn decide_claims(&self, claims: &[BudgetClaim]) -> Vec<BudgetDecision> {
        claims
            .iter()
            .map(|claim| self.budgets.decide_for_peer(claim))
            .collect()
    }

    /// The deciding hub of these callers reports their debts.
    pub fn apply_debts(&self, debts: &[(CallerId, u64)]) {
        let now = self.budgets.now_nanos();
        debts
            .iter()
            .for_each(|(caller, debt)| self.budgets.learn_debt(*caller, *debt, now));
    }
}

/// Sends the queued claims of one peer, one request at a time, until there are none.
async fn send_claims(client: Arc<PeerClient>, queues: Arc<ClaimQueues>, hub: HubId) {
    loop {
        let (claims, waiting): (Vec<BudgetClaim>, Vec<_>) =
            queues.take_batch(hub).into_iter().unzip();
        if claims.is_empty() {
            return;
        }
        let request = encode_message(&PeerRequest::Spend(claims));
        let answer = client.request_within(hub, request, limits::BUDGET_SYNC_WAIT);
        let decisions = match answer.await {
            Ok(answer) => decode_message::<Vec<BudgetDecision>>(&answer).unwrap_or_default(),
            Err(RequestError::NoResponders) => {
                for reply in waiting {
                    let _ = reply.send(Err(RequestError::NoResponders));
                }
                continue;
            }
            Err(RequestError::Timeout) => Vec::new(),
        };
        // An answer of another length does not say which claims were counted.
        if decisions.len() != waiting.len() {
            queues.pause_hub(hub, Instant::now());
        }
        for (reply, decision) in waiting.into_iter().zip(decisions) {
            let _ = reply.send(Ok(decision));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::AgentId;

    fn spend(agent: AgentId) -> BudgetClaim {
        BudgetClaim {
            caller: CallerId::Agent(agent),
            owed: 0,
            known: 0,
            quota: 20,
        }
    }

    /// Invariant 6
    #[test]
    fn those_of_one_moment_are_asked_for_together_and_nobody_who_left() {
        let (spends, now) = (ClaimQueues::default(), Instant::now());
        let (first, at_once) = spends.enqueue_claim(1, spend(AgentId(1)), now).unwrap();
        let (left, not_now) = spends.enqueue_claim(1, spend(AgentId(2)), now).unwrap();
        assert!(at_once && !not_now, "one asks for all");
        drop(left);
        let next = spends.take_batch(1);
        assert_eq!(
            next.iter()
                .map(|(spend, _)| spend.caller)
                .collect::<Vec<_>>(),
            [CallerId::Agent(AgentId(1))]
        );
        let (third, at_once) = spends.enqueue_claim(1, spend(AgentId(3)), now).unwrap();
        assert!(!at_once, "a question is under way");
        assert_eq!(spends.take_batch(1).len(), 1);
        assert!(spends.take_batch(1).is_empty());
        assert!(
            spends.enqueue_claim(1, spend(AgentId(4)), now).unwrap().1,
            "the line was over"
        );
        drop((first, third));
        let all = (0..limits::BUDGET_REQUESTS_WAITING)
            .map_while(|agent| spends.enqueue_claim(2, spend(AgentId(agent as i64)), now));
        assert_eq!(
            all.collect::<Vec<_>>().len(),
            limits::BUDGET_REQUESTS_WAITING
        );
        assert!(spends.enqueue_claim(2, spend(AgentId(0)), now).is_none());
    }

    #[tokio::test]
    async fn a_hub_that_does_not_answer_is_left_alone_for_a_while() {
        let (spends, now) = (ClaimQueues::default(), Instant::now());
        let (first, _) = spends.enqueue_claim(1, spend(AgentId(1)), now).unwrap();
        let asked = spends.take_batch(1);
        let (waits, _) = spends.enqueue_claim(1, spend(AgentId(2)), now).unwrap();
        spends.pause_hub(1, now);
        assert_eq!(
            waits.await.unwrap(),
            Err(RequestError::NoResponders),
            "it was not asked about: no hub has counted it"
        );
        drop(asked);
        assert!(first.await.is_err(), "it was, and may have been counted");
        assert!(spends.enqueue_claim(1, spend(AgentId(3)), now).is_none());
        assert!(spends.take_batch(1).is_empty());
        assert!(
            spends
                .enqueue_claim(1, spend(AgentId(3)), now + SILENT_HUB_PAUSE)
                .unwrap()
                .1
        );
    }
}
