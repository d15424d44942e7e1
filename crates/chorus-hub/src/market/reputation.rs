//! What work earns: the jobs document's formula, applied by the hub alone and once per job (R-63, JOB-22…26).

use crate::identity::find_agent;
use crate::store::{DbConnection, WriteTxn, reputation as table, skills};
use crate::{Hub, Principal, Result};
use chorus_wire::market::reputation::{ReputationReport, ReputationStats};
use chorus_wire::{Code, identity::AgentName, limits};

/// A reputation, from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct ReputationScore(f64);

impl ReputationScore {
    /// Where everybody starts (JOB-22).
    pub const NEUTRAL: Self = Self(50.0);
    const MAX: f64 = 100.0;
    /// The reward of a success that a hirer of the best reputation gives.
    const SUCCESS_WEIGHT: f64 = 2.0;
    const FAILURE_PENALTY: f64 = 3.0;
    /// Failures cost more than successes earn.
    const FAILURE_SEVERITY: f64 = 1.5;

    /// After one job for `hirer`.
    pub fn after_job(self, success: bool, requester_score: Self) -> Self {
        let changed = if success {
            self.0 + Self::SUCCESS_WEIGHT * requester_score.0 / Self::MAX
        } else {
            self.0 - Self::FAILURE_PENALTY * Self::FAILURE_SEVERITY
        };
        Self::from_clamped(changed)
    }

    /// The score nearest to a number.
    pub fn from_clamped(number: f64) -> Self {
        // Adding zero turns a negative zero, whose bits would sort first and last at once, into the plain one.
        Self(number.clamp(0.0, Self::MAX) + 0.0)
    }

    pub fn value(self) -> f64 {
        self.0
    }

    /// How it is kept: never below zero, so its bits sort as it does (D-31).
    pub fn to_bits(self) -> i64 {
        self.0.to_bits() as i64
    }

    pub fn from_bits(bits: i64) -> Self {
        Self::from_clamped(f64::from_bits(bits as u64))
    }
}

/// A job came to its end: the worker's score follows, in the job's own transaction. A job is judged once. Work for oneself, or
/// for another agent of the same owner, earns nothing, or a score could be made at home.
pub(crate) async fn apply_job_result(
    txn: &mut WriteTxn<'_>,
    job_id: i64,
    worker_id: i64,
    requester: i64,
    success: bool,
) -> Result<()> {
    let Some(parties) = table::read_party_scores(&txn.tx, worker_id, requester).await? else {
        return Ok(());
    };
    if parties.same_owner {
        return Ok(());
    }
    let stored_score =
        |bits: Option<i64>| bits.map_or(ReputationScore::NEUTRAL, ReputationScore::from_bits);
    let before = stored_score(parties.worker);
    let after = before.after_job(success, stored_score(parties.requester));
    let judgement = table::JudgementRecord {
        job: job_id,
        worker: worker_id,
        requester,
        success,
        score_before: before.to_bits(),
        score_after: after.to_bits(),
        at: txn.now(),
    };
    if table::record_judgement(&txn.tx, &judgement).await? && before != after {
        skills::update_skill_scores(&txn.tx, worker_id, after.to_bits()).await?;
    }
    Ok(())
}

/// An agent's score as it stands.
pub(crate) async fn current_score(tx: &DbConnection<'_>, agent_id: i64) -> Result<ReputationScore> {
    Ok(table::read_reputation(tx, agent_id)
        .await?
        .map_or(ReputationScore::NEUTRAL, |(bits, _)| {
            ReputationScore::from_bits(bits)
        }))
}

/// `GET /reputation/{agent}`
pub async fn get_reputation(
    _principal: &Principal,
    hub: &Hub,
    name: &str,
) -> Result<ReputationReport> {
    let agent = match AgentName::parse("agent_id", name) {
        Ok(name) => find_agent(hub, &name).await?,
        // Nobody can have a name that is not one.
        Err(_) => None,
    };
    let agent = agent.ok_or(Code::AgentNotFound)?;
    let id = agent.id;
    let (stored, history) = hub
        .store()
        .read(async move |tx| {
            Ok((
                table::read_reputation(tx, id).await?,
                table::list_judgements(tx, id, limits::REPUTATION_HISTORY_ROWS).await?,
            ))
        })
        .await?;
    let (score, stats) = stored.map_or(
        (ReputationScore::NEUTRAL, ReputationStats::default()),
        |(bits, stats)| (ReputationScore::from_bits(bits), stats),
    );
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

    /// JOB-23, JOB-24: the numbers that follow from the document by hand.
    #[test]
    fn the_first_job_of_a_newcomer_is_worth_what_the_document_says() {
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
        fn a_score_stays_between_its_ends(start in score(), jobs in prop::collection::vec((any::<bool>(), score()), 0..200)) {
            let mut now = start;
            for (success, hirer) in jobs {
                now = now.after_job(success, hirer);
                prop_assert!((0.0..=100.0).contains(&now.value()) && now.value().is_sign_positive());
            }
        }

        /// JOB-23…26: the formula, and nothing of it lost on the way to the store and back
        #[test]
        fn a_job_moves_a_score_as_printed(old in score(), hirer in score(), success in any::<bool>()) {
            let printed = if success { old.value() + 2.0 * hirer.value() / 100.0 } else { old.value() - 3.0 * 1.5 };
            let new = old.after_job(success, hirer);
            prop_assert_eq!(new.value(), printed.clamp(0.0, 100.0));
            prop_assert_eq!(ReputationScore::from_bits(new.to_bits()), new);
        }

        /// JOB-26
        #[test]
        fn a_better_hirer_never_gives_less(old in score(), one in score(), other in score()) {
            let (low, high) = if one < other { (one, other) } else { (other, one) };
            prop_assert!(old.after_job(true, low) <= old.after_job(true, high));
            prop_assert_eq!(old.after_job(false, low), old.after_job(false, high));
        }

        /// D-31
        #[test]
        fn bits_sort_like_scores(one in score(), other in score()) {
            prop_assert_eq!(one.to_bits().cmp(&other.to_bits()), one.value().total_cmp(&other.value()));
        }
    }
}
