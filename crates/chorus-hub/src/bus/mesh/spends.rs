//! One budget at several hubs: what was spent is said a few times a second, and near its end one hub decides for all (D-85).

use super::super::Behind;
use super::super::nats::Silence;
use super::super::words::{Ask, HubId, Said, Spend, Verdict, pack, unpack};
use super::{Mesh, locked};
use crate::identity::budget::{Budgets, Caller};
use chorus_wire::limits;
use futures_util::future::join_all;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

/// The pause between two times of telling: what is spent meanwhile is said together.
const EVERY: Duration = Duration::from_millis(20);
/// How long a hub that did not answer is not asked again: whoever asks then need not wait for it too.
const UNASKED: Duration = Duration::from_secs(1);

/// Who decides about a caller.
pub(crate) struct Owner {
    /// Nothing when it is this hub.
    pub elsewhere: Option<HubId>,
    /// Among how many.
    pub hubs: usize,
}

type Answer = Result<Verdict, Silence>;

/// Those who wait for the word of another hub.
#[derive(Default)]
struct Line {
    waiting: Vec<(Spend, oneshot::Sender<Answer>)>,
    /// Somebody is asking: what comes meanwhile goes out together.
    busy: bool,
    not_before: Option<Instant>,
}

#[derive(Default)]
pub(super) struct Spends(Mutex<HashMap<HubId, Line>>);

impl Spends {
    /// Stands in line; whether somebody is to ask now. Nothing where there is no use in waiting.
    fn stand(
        &self,
        hub: HubId,
        spend: Spend,
        now: Instant,
    ) -> Option<(oneshot::Receiver<Answer>, bool)> {
        let mut lines = locked(&self.0);
        lines.retain(|_, line| line.busy || line.not_before.is_some_and(|at| at > now));
        let line = lines.entry(hub).or_default();
        if line.not_before.is_some_and(|at| at > now) || line.waiting.len() >= limits::BUDGETS_ASKED
        {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        line.waiting.push((spend, answer));
        Some((answered, !std::mem::replace(&mut line.busy, true)))
    }

    /// Those who go next; the line is over when there is nobody.
    fn next(&self, hub: HubId) -> Vec<(Spend, oneshot::Sender<Answer>)> {
        let mut lines = locked(&self.0);
        let Some(line) = lines.get_mut(&hub) else {
            return Vec::new();
        };
        line.waiting.retain(|(_, answer)| !answer.is_closed());
        let many = line.waiting.len().min(limits::BUDGETS_SAID);
        let next: Vec<_> = line.waiting.drain(..many).collect();
        line.busy = !next.is_empty();
        next
    }

    /// The hub does not answer: those who have not asked yet are told at once.
    fn silent(&self, hub: HubId, now: Instant) {
        let mut lines = locked(&self.0);
        let line = lines.entry(hub).or_default();
        line.not_before = Some(now + UNASKED);
        for (_, answer) in line.waiting.drain(..) {
            let _ = answer.send(Err(Silence::Nobody));
        }
    }
}

impl Mesh {
    /// Who decides about the caller of this mark; nothing when there is no other hub.
    pub fn owner(&self, mark: u64) -> Option<Owner> {
        let (hub, others) = self.peers.owner(self.id, mark)?;
        Some(Owner {
            elsewhere: Some(hub).filter(|hub| *hub != self.id),
            hubs: others + 1,
        })
    }

    /// What the hub that decides says. `Nobody` when it has not heard of it for sure.
    pub async fn ask_owner(&self, hub: HubId, spend: Spend) -> Answer {
        let (answered, first) = self
            .spends
            .stand(hub, spend, Instant::now())
            .ok_or(Silence::Nobody)?;
        if first {
            self.briefly(Self::ask_for_all(self.me.clone(), hub));
        }
        timeout(limits::BUDGET_WAIT, answered)
            .await
            .ok()
            .and_then(Result::ok)
            .unwrap_or(Err(Silence::Late))
    }

    /// One question after the other, each for all who have gathered.
    async fn ask_for_all(me: Weak<Mesh>, hub: HubId) {
        while let Some(mesh) = me.upgrade() {
            let (spends, waiting): (Vec<Spend>, Vec<_>) = mesh.spends.next(hub).into_iter().unzip();
            if spends.is_empty() {
                return;
            }
            let verdicts = match mesh
                .ask_within(hub, pack(&Ask::Spend(spends)), limits::BUDGET_WAIT)
                .await
            {
                Ok(answer) => unpack::<Vec<Verdict>>(&answer).unwrap_or_default(),
                Err(Silence::Nobody) => {
                    for answer in waiting {
                        let _ = answer.send(Err(Silence::Nobody));
                    }
                    continue;
                }
                Err(Silence::Late) => Vec::new(),
            };
            // An answer of another length is none: nobody knows what was counted.
            if verdicts.len() != waiting.len() {
                mesh.spends.silent(hub, Instant::now());
            }
            for (answer, verdict) in waiting.into_iter().zip(verdicts) {
                let _ = answer.send(Ok(verdict));
            }
        }
    }

    /// Tells the others what is spent here, and what those owe about whom this hub decides.
    pub(super) async fn tell_spends(me: Weak<Mesh>, budgets: Arc<Budgets>) {
        loop {
            budgets.news.notified().await;
            let Some(mesh) = me.upgrade() else { return };
            let mut debts: Vec<(Caller, u64)> = Vec::new();
            let mut spends: HashMap<HubId, Vec<Spend>> = HashMap::new();
            for (caller, owed, debt) in budgets.gather() {
                match mesh.owner(caller.mark()).map(|owner| owner.elsewhere) {
                    Some(Some(hub)) => spends.entry(hub).or_default().push(Spend {
                        caller,
                        owed,
                        known: 0,
                        quota: 0,
                    }),
                    Some(None) => debts.push((caller, debt)),
                    None => {}
                }
            }
            for some in debts.chunks(limits::BUDGETS_SAID) {
                mesh.say(&Said::Spent(mesh.id, some.to_vec())).await;
            }
            let asks = spends.iter().flat_map(|(hub, all)| {
                all.chunks(limits::BUDGETS_SAID)
                    .map(move |some| (*hub, some))
            });
            // Who does not hear it knows less (law 4).
            join_all(asks.map(|(hub, some)| {
                mesh.ask_within(hub, pack(&Ask::Spend(some.to_vec())), limits::BUDGET_WAIT)
            }))
            .await;
            drop(mesh);
            tokio::time::sleep(EVERY).await;
        }
    }

    /// Decides for another hub.
    pub(super) fn judge(&self, spends: &[Spend]) -> Vec<Verdict> {
        let Some(budgets) = self.behind().and_then(Behind::budgets) else {
            return Vec::new();
        };
        spends.iter().map(|spend| budgets.judge(spend)).collect()
    }

    /// Another hub decides about these, and says what they owe.
    pub(super) fn learn_debts(&self, debts: &[(Caller, u64)]) {
        let Some(budgets) = self.behind().and_then(Behind::budgets) else {
            return;
        };
        let now = budgets.now();
        debts
            .iter()
            .for_each(|(caller, debt)| budgets.learn(*caller, *debt, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spend(agent: i64) -> Spend {
        Spend {
            caller: Caller::Agent(agent),
            owed: 0,
            known: 0,
            quota: 20,
        }
    }

    /// Law 6
    #[test]
    fn those_of_one_moment_are_asked_for_together_and_nobody_who_left() {
        let (spends, now) = (Spends::default(), Instant::now());
        let (first, at_once) = spends.stand(1, spend(1), now).unwrap();
        let (left, not_now) = spends.stand(1, spend(2), now).unwrap();
        assert!(at_once && !not_now, "one asks for all");
        drop(left);
        let next = spends.next(1);
        assert_eq!(
            next.iter()
                .map(|(spend, _)| spend.caller)
                .collect::<Vec<_>>(),
            [Caller::Agent(1)]
        );
        let (third, at_once) = spends.stand(1, spend(3), now).unwrap();
        assert!(!at_once, "a question is under way");
        assert_eq!(spends.next(1).len(), 1);
        assert!(spends.next(1).is_empty());
        assert!(
            spends.stand(1, spend(4), now).unwrap().1,
            "the line was over"
        );
        drop((first, third));
        let all =
            (0..limits::BUDGETS_ASKED).map_while(|agent| spends.stand(2, spend(agent as i64), now));
        assert_eq!(all.collect::<Vec<_>>().len(), limits::BUDGETS_ASKED);
        assert!(spends.stand(2, spend(0), now).is_none());
    }

    #[tokio::test]
    async fn a_hub_that_does_not_answer_is_left_alone_for_a_while() {
        let (spends, now) = (Spends::default(), Instant::now());
        let (first, _) = spends.stand(1, spend(1), now).unwrap();
        let asked = spends.next(1);
        let (waits, _) = spends.stand(1, spend(2), now).unwrap();
        spends.silent(1, now);
        assert_eq!(
            waits.await.unwrap(),
            Err(Silence::Nobody),
            "it was not asked about: nobody has counted it"
        );
        drop(asked);
        assert!(first.await.is_err(), "it was, and may have been counted");
        assert!(spends.stand(1, spend(3), now).is_none());
        assert!(spends.next(1).is_empty());
        assert!(spends.stand(1, spend(3), now + UNASKED).unwrap().1);
    }
}
