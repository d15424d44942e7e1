//! One budget at several hubs: what was spent is said a few times a second, and near its end one hub decides for all (D-85).

use super::super::HubCallbacks;
use super::super::nats::RequestError;
use super::super::protocol::{
    HubId, PeerAnnouncement, PeerRequest, decode_message, encode_message,
};
use super::{ClusterNode, lock_mutex};
use crate::identity::rate_limit::{
    BudgetAuthority, BudgetClaim, BudgetDecision, BudgetOwner, CallerId, ClaimError, RateBudgets,
};
use chorus_wire::limits;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

/// The pause between two times of telling: what is spent meanwhile is said together.
const SYNC_INTERVAL: Duration = Duration::from_millis(20);
/// How long a hub that did not answer is not asked again: whoever asks then need not wait for it too.
const SILENT_HUB_PAUSE: Duration = Duration::from_secs(1);

type DecisionResult = Result<BudgetDecision, RequestError>;

/// Those who wait for the word of another hub.
#[derive(Default)]
struct ClaimQueue {
    waiting: Vec<(BudgetClaim, oneshot::Sender<DecisionResult>)>,
    /// Somebody is asking: what comes meanwhile goes out together.
    is_sending: bool,
    paused_until: Option<Instant>,
}

#[derive(Default)]
pub(super) struct ClaimQueues(Mutex<HashMap<HubId, ClaimQueue>>);

impl ClaimQueues {
    /// Stands in line; whether somebody is to ask now. Nothing where there is no use in waiting.
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

    /// Those who go next; the line is over when there is nobody.
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

    /// The hub does not answer: those who have not asked yet are told at once.
    fn pause_hub(&self, hub: HubId, now: Instant) {
        let mut queues = lock_mutex(&self.0);
        let queue = queues.entry(hub).or_default();
        queue.paused_until = Some(now + SILENT_HUB_PAUSE);
        for (_, reply) in queue.waiting.drain(..) {
            let _ = reply.send(Err(RequestError::NoResponders));
        }
    }
}

impl BudgetAuthority for ClusterNode {
    fn budget_owner(&self, caller_hash: u64) -> Option<BudgetOwner> {
        let (hub, others) = self.peers.select_owner(self.hub_id, caller_hash)?;
        Some(BudgetOwner {
            remote_hub: Some(hub).filter(|hub| *hub != self.hub_id),
            hub_count: others + 1,
        })
    }

    fn request_decision(
        &self,
        hub: HubId,
        claim: BudgetClaim,
    ) -> BoxFuture<'_, Result<BudgetDecision, ClaimError>> {
        async move {
            let decision = self.queue_claim(hub, claim).await;
            decision.map_err(|error| match error {
                RequestError::NoResponders => ClaimError::NotReceived,
                RequestError::Timeout => ClaimError::Unknown,
            })
        }
        .boxed()
    }
}

impl ClusterNode {
    async fn queue_claim(&self, hub: HubId, claim: BudgetClaim) -> DecisionResult {
        let (decision, is_first) = self
            .claim_queues
            .enqueue_claim(hub, claim, Instant::now())
            .ok_or(RequestError::NoResponders)?;
        if is_first {
            self.spawn_detached(Self::send_claims(self.weak_self.clone(), hub));
        }
        timeout(limits::BUDGET_SYNC_WAIT, decision)
            .await
            .ok()
            .and_then(Result::ok)
            .unwrap_or(Err(RequestError::Timeout))
    }

    /// One question after the other, each for all who have gathered.
    async fn send_claims(weak_node: Weak<ClusterNode>, hub: HubId) {
        while let Some(node) = weak_node.upgrade() {
            let (claims, waiting): (Vec<BudgetClaim>, Vec<_>) =
                node.claim_queues.take_batch(hub).into_iter().unzip();
            if claims.is_empty() {
                return;
            }
            let decisions = match node
                .request_within(
                    hub,
                    encode_message(&PeerRequest::Spend(claims)),
                    limits::BUDGET_SYNC_WAIT,
                )
                .await
            {
                Ok(answer) => decode_message::<Vec<BudgetDecision>>(&answer).unwrap_or_default(),
                Err(RequestError::NoResponders) => {
                    for reply in waiting {
                        let _ = reply.send(Err(RequestError::NoResponders));
                    }
                    continue;
                }
                Err(RequestError::Timeout) => Vec::new(),
            };
            // An answer of another length is none: nobody knows what was counted.
            if decisions.len() != waiting.len() {
                node.claim_queues.pause_hub(hub, Instant::now());
            }
            for (reply, decision) in waiting.into_iter().zip(decisions) {
                let _ = reply.send(Ok(decision));
            }
        }
    }

    /// Tells the others what is spent here, and what those owe about whom this hub decides.
    pub(super) async fn sync_budgets(weak_node: Weak<ClusterNode>, budgets: Arc<RateBudgets>) {
        loop {
            budgets.sync_wakeup.notified().await;
            let Some(node) = weak_node.upgrade() else {
                return;
            };
            let mut debts: Vec<(CallerId, u64)> = Vec::new();
            let mut claims: HashMap<HubId, Vec<BudgetClaim>> = HashMap::new();
            for (caller, owed, debt) in budgets.collect_unsynced() {
                match node
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
            for chunk in debts.chunks(limits::BUDGET_SYNC_CALLERS) {
                node.announce(&PeerAnnouncement::Spent(node.hub_id, chunk.to_vec()))
                    .await;
            }
            let requests = claims.iter().flat_map(|(hub, claims)| {
                claims
                    .chunks(limits::BUDGET_SYNC_CALLERS)
                    .map(move |chunk| (*hub, chunk))
            });
            // Who does not hear it knows less (law 4).
            join_all(requests.map(|(hub, chunk)| {
                node.request_within(
                    hub,
                    encode_message(&PeerRequest::Spend(chunk.to_vec())),
                    limits::BUDGET_SYNC_WAIT,
                )
            }))
            .await;
            drop(node);
            tokio::time::sleep(SYNC_INTERVAL).await;
        }
    }

    /// Decides for another hub.
    pub(super) fn decide_claims(&self, claims: &[BudgetClaim]) -> Vec<BudgetDecision> {
        let Some(budgets) = self.hub_callbacks().and_then(HubCallbacks::rate_budgets) else {
            return Vec::new();
        };
        claims
            .iter()
            .map(|claim| budgets.decide_for_peer(claim))
            .collect()
    }

    /// Another hub decides about these, and says what they owe.
    pub(super) fn apply_debts(&self, debts: &[(CallerId, u64)]) {
        let Some(budgets) = self.hub_callbacks().and_then(HubCallbacks::rate_budgets) else {
            return;
        };
        let now = budgets.now_nanos();
        debts
            .iter()
            .for_each(|(caller, debt)| budgets.learn_debt(*caller, *debt, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend(agent: i64) -> BudgetClaim {
        BudgetClaim {
            caller: CallerId::Agent(agent),
            owed: 0,
            known: 0,
            quota: 20,
        }
    }

    /// Law 6
    #[test]
    fn those_of_one_moment_are_asked_for_together_and_nobody_who_left() {
        let (spends, now) = (ClaimQueues::default(), Instant::now());
        let (first, at_once) = spends.enqueue_claim(1, spend(1), now).unwrap();
        let (left, not_now) = spends.enqueue_claim(1, spend(2), now).unwrap();
        assert!(at_once && !not_now, "one asks for all");
        drop(left);
        let next = spends.take_batch(1);
        assert_eq!(
            next.iter()
                .map(|(spend, _)| spend.caller)
                .collect::<Vec<_>>(),
            [CallerId::Agent(1)]
        );
        let (third, at_once) = spends.enqueue_claim(1, spend(3), now).unwrap();
        assert!(!at_once, "a question is under way");
        assert_eq!(spends.take_batch(1).len(), 1);
        assert!(spends.take_batch(1).is_empty());
        assert!(
            spends.enqueue_claim(1, spend(4), now).unwrap().1,
            "the line was over"
        );
        drop((first, third));
        let all = (0..limits::BUDGET_REQUESTS_WAITING)
            .map_while(|agent| spends.enqueue_claim(2, spend(agent as i64), now));
        assert_eq!(
            all.collect::<Vec<_>>().len(),
            limits::BUDGET_REQUESTS_WAITING
        );
        assert!(spends.enqueue_claim(2, spend(0), now).is_none());
    }

    #[tokio::test]
    async fn a_hub_that_does_not_answer_is_left_alone_for_a_while() {
        let (spends, now) = (ClaimQueues::default(), Instant::now());
        let (first, _) = spends.enqueue_claim(1, spend(1), now).unwrap();
        let asked = spends.take_batch(1);
        let (waits, _) = spends.enqueue_claim(1, spend(2), now).unwrap();
        spends.pause_hub(1, now);
        assert_eq!(
            waits.await.unwrap(),
            Err(RequestError::NoResponders),
            "it was not asked about: nobody has counted it"
        );
        drop(asked);
        assert!(first.await.is_err(), "it was, and may have been counted");
        assert!(spends.enqueue_claim(1, spend(3), now).is_none());
        assert!(spends.take_batch(1).is_empty());
        assert!(
            spends
                .enqueue_claim(1, spend(3), now + SILENT_HUB_PAUSE)
                .unwrap()
                .1
        );
    }
}
