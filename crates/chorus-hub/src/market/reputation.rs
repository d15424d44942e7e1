//! Reputation: a worker's score by the jobs document's formula, changed by the hub alone and once
//! per job (R-63, JOB-22…26).

use super::jobs::JobEnding;
use crate::context::HubContext;
use crate::identity::find_agent;
use crate::store::jobs::JobRecord;
use crate::store::{AgentId, DbConnection, JobState, WriteTxn, reputation, skills};
use crate::{Principal, Result};
use chorus_wire::credits::Credits;
use chorus_wire::market::reputation::{ReputationReport, ReputationStats};
use chorus_wire::{ErrorCode, identity::AgentName, limits};

/// A reputation score, from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct ReputationScore(f64);

impl ReputationScore {
    /// The score of an agent without jobs (JOB-22).
    pub const NEUTRAL: Self = Self(50.0);
    const MAX: f64 = 100.0;
    /// The reward of a success for a requester with the highest score.
    const SUCCESS_WEIGHT: f64 = 2.0;
    const FAILURE_PENALTY: f64 = 3.0;
    /// Failures cost more than successes earn.
    const FAILURE_SEVERITY: f64 = 1.5;

    /// The worker's score after one job for a requester with `requester_score`.
    pub fn after_job(self, success: bool, requester_score: Self) -> Self {
        let changed = if success {
            self.0 + Self::SUCCESS_WEIGHT * requester_score.0 / Self::MAX
        } else {
            self.0 - Self::FAILURE_PENALTY * Self::FAILURE_SEVERITY
        };
        Self::from_clamped(changed)
    }

    /// The score nearest to a number, which may be out of range.
    pub fn from_clamped(number: f64) -> Self {
        // Adding zero turns negative zero, whose bits do not sort as its value does, into zero.
        Self(number.clamp(0.0, Self::MAX) + 0.0)
    }

    pub fn value(self) -> f64 {
        self.0
    }

    /// The stored form. A score is never negative, so its bits sort as its value does (D-31).
    pub fn to_bits(self) -> i64 {
        self.0.to_bits() as i64
    }

    pub fn from_bits(bits: i64) -> Self {
        Self::from_clamped(f64::from_bits(bits as u64))
    }
}

/// What the end of a job does to the score of its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScoreEffect {
    /// The job counts as a success.
    Raised,
    /// The job counts as a failure.
    Lowered,
    /// The job says nothing about its worker.
    Unchanged,
}

/// What the end of a job does to the score of its worker. A missed deadline is a failure.
pub(super) fn score_effect_of(job: &JobRecord, ending: &JobEnding) -> ScoreEffect {
    // a job between agents of one owner earns no reputation, even if an agent has changed its
    // owner since.
    if job.payer == job.payee {
        return ScoreEffect::Unchanged;
    }
    match ending {
        JobEnding::Done { .. } | JobEnding::Approved => ScoreEffect::Raised,
        JobEnding::Failed {
            affects_reputation: true,
            ..
        } => ScoreEffect::Lowered,
        JobEnding::Failed {
            affects_reputation: false,
            ..
        } => ScoreEffect::Unchanged,
        // A requester that has the output and does not pay for it cannot lower the score as well.
        JobEnding::Cancelled | JobEnding::Rejected { .. } => ScoreEffect::Unchanged,
        // D-96: a job that was never dispatched says nothing about its worker, nor does one whose worker waits for an answer.
        JobEnding::Expired if job.state == JobState::Dispatched => ScoreEffect::Lowered,
        JobEnding::Expired => ScoreEffect::Unchanged,
    }
}

/// Changes the worker's score when a job ends, in the job's transaction and once per job. Work for
/// itself or for another agent of the same owner earns nothing: otherwise an owner could raise its
/// own scores.
pub(super) async fn apply_score_effect(
    txn: &mut WriteTxn<'_>,
    job: &JobRecord,
    effect: ScoreEffect,
    paid: Credits,
) -> Result<()> {
    let success = match effect {
        ScoreEffect::Raised => true,
        ScoreEffect::Lowered => false,
        ScoreEffect::Unchanged => return Ok(()),
    };
    let worker_id = job.worker;
    let requester = job.requester;
    let Some(parties) = reputation::read_party_scores(&txn.tx, worker_id, requester).await? else {
        return Ok(());
    };
    if parties.same_owner {
        return Ok(());
    }
    let stored_score =
        |bits: Option<i64>| bits.map_or(ReputationScore::NEUTRAL, ReputationScore::from_bits);
    let before = stored_score(parties.worker);
    let after = before.after_job(success, stored_score(parties.requester));
    let judgement = reputation::JudgementRecord {
        job: job.id,
        worker: worker_id,
        requester,
        success,
        score_before: before.to_bits(),
        score_after: after.to_bits(),
        hirer: job.payer,
        paid,
        at: txn.now(),
    };
    if reputation::record_judgement(&txn.tx, &judgement).await? && before != after {
        skills::update_skill_scores(&txn.tx, worker_id, after.to_bits()).await?;
    }
    Ok(())
}

/// An agent's current score.
pub(crate) async fn current_score(
    tx: &DbConnection<'_>,
    agent_id: AgentId,
) -> Result<ReputationScore> {
    Ok(reputation::read_reputation(tx, agent_id)
        .await?
        .map_or(ReputationScore::NEUTRAL, |(bits, _)| {
            ReputationScore::from_bits(bits)
        }))
}

/// `GET /reputation/{agent}`
pub async fn get_reputation(
    _principal: &Principal,
    hub: &HubContext,
    name: &str,
) -> Result<ReputationReport> {
    let agent = match AgentName::parse("agent_id", name) {
        Ok(name) => find_agent(hub.identity(), &name).await?,
        // No agent has an invalid name.
        Err(_) => None,
    };
    let agent = agent.ok_or(ErrorCode::AgentNotFound)?;
    let id = agent.id;
    let now = hub.clock().now();
    let (stored, recent, history) = hub
        .store()
        .read(async move |tx| {
            Ok((
                reputation::read_reputation(tx, id).await?,
                reputation::read_recent_stats(tx, id, now).await?,
                reputation::list_judgements(tx, id, limits::REPUTATION_HISTORY_ROWS).await?,
            ))
        })
        .await?;
    let (score, mut stats) = stored.map_or(
        (ReputationScore::NEUTRAL, ReputationStats::default()),
        |(bits, stats)| (ReputationScore::from_bits(bits), stats),
    );
    stats.last_30_days = recent;
    Ok(ReputationReport {
        agent_id: agent.agent_id.to_string(),
        score: score.value(),
        stats,
        history,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn score() -> impl Strategy<Value = ReputationScore> {
        prop_oneof![Just(0.0), Just(100.0), Just(50.0), 0.0..=100.0]
            .prop_map(ReputationScore::from_clamped)
    }

    /// JOB-23, JOB-24: the numbers are computed from the document by hand.
    #[test]
    fn the_first_job_changes_the_score_as_the_document_says() {
        assert_eq!(
            ReputationScore::NEUTRAL
                .after_job(true, ReputationScore::NEUTRAL)
                .value(),
            51.0
        );
        assert_eq!(
            ReputationScore::NEUTRAL
                .after_job(false, ReputationScore::NEUTRAL)
                .value(),
            45.5
        );
        assert_eq!(
            ReputationScore::NEUTRAL
                .after_job(true, ReputationScore::from_clamped(100.0))
                .value(),
            52.0
        );
        assert_eq!(
            ReputationScore::NEUTRAL
                .after_job(true, ReputationScore::from_clamped(0.0))
                .value(),
            50.0
        );
        assert_eq!(
            ReputationScore::from_clamped(99.5)
                .after_job(true, ReputationScore::from_clamped(100.0))
                .value(),
            100.0
        );
        assert_eq!(
            ReputationScore::from_clamped(4.0)
                .after_job(false, ReputationScore::NEUTRAL)
                .value(),
            0.0
        );
    }

    proptest! {
        /// JOB-25
        #[test]
        fn a_score_stays_in_its_range(start in score(), jobs in prop::collection::vec((any::<bool>(), score()), 0..200)) {
            let mut score = start;
            for (success, requester) in jobs {
                score = score.after_job(success, requester);
                prop_assert!((0.0..=100.0).contains(&score.value()) && score.value().is_sign_positive());
            }
        }

        /// JOB-23…26: the formula, and the stored form keeps the exact value.
        #[test]
        fn a_job_changes_a_score_by_the_formula(old in score(), requester in score(), success in any::<bool>()) {
            let expected = if success { old.value() + 2.0 * requester.value() / 100.0 } else { old.value() - 3.0 * 1.5 };
            let new = old.after_job(success, requester);
            prop_assert_eq!(new.value(), expected.clamp(0.0, 100.0));
            prop_assert_eq!(ReputationScore::from_bits(new.to_bits()), new);
        }

        /// JOB-26
        #[test]
        fn a_requester_with_a_higher_score_never_gives_less(old in score(), first in score(), second in score()) {
            let (low, high) = if first < second { (first, second) } else { (second, first) };
            prop_assert!(old.after_job(true, low) <= old.after_job(true, high));
            prop_assert_eq!(old.after_job(false, low), old.after_job(false, high));
        }

        /// D-31
        #[test]
        fn bits_sort_like_scores(first in score(), second in score()) {
            prop_assert_eq!(first.to_bits().cmp(&second.to_bits()), first.value().total_cmp(&second.value()));
        }
    }
}
