//! What work earns: the jobs document's formula, applied by the hub alone and once per job (R-63, JOB-22…26).

use crate::identity::find;
use crate::store::{Tx, Txn, reputation as table, skills};
use crate::{Hub, Principal, Result};
use chorus_wire::market::reputation::{Reputation, Stats};
use chorus_wire::{Code, identity::Name, limits};

/// A reputation, from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub(crate) struct Score(f64);

impl Score {
    /// Where everybody starts (JOB-22).
    pub const NEUTRAL: Self = Self(50.0);
    const MOST: f64 = 100.0;
    /// The reward of a success that a hirer of the best reputation gives.
    const WEIGHT: f64 = 2.0;
    const PENALTY: f64 = 3.0;
    /// Failures cost more than successes earn.
    const SEVERITY: f64 = 1.5;

    /// After one job for `hirer`.
    pub fn after(self, success: bool, hirer: Self) -> Self {
        let moved = if success {
            self.0 + Self::WEIGHT * hirer.0 / Self::MOST
        } else {
            self.0 - Self::PENALTY * Self::SEVERITY
        };
        Self::at_least(moved)
    }

    /// The score nearest to a number.
    pub fn at_least(number: f64) -> Self {
        // Adding zero turns a negative zero, whose bits would sort first and last at once, into the plain one.
        Self(number.clamp(0.0, Self::MOST) + 0.0)
    }

    pub fn value(self) -> f64 {
        self.0
    }

    /// How it is kept: never below zero, so its bits sort as it does (D-31).
    pub fn bits(self) -> i64 {
        self.0.to_bits() as i64
    }

    pub fn of_bits(bits: i64) -> Self {
        Self::at_least(f64::from_bits(bits as u64))
    }
}

/// A job came to its end: the worker's score follows, in the job's own transaction. A job is judged once. Work for oneself, or
/// for another agent of the same owner, earns nothing, or a score could be made at home.
pub(crate) async fn judge(
    txn: &mut Txn<'_>,
    job: i64,
    worker: i64,
    hirer: i64,
    success: bool,
) -> Result<()> {
    let Some(sides) = table::sides(&txn.tx, worker, hirer).await? else {
        return Ok(());
    };
    if sides.same_owner {
        return Ok(());
    }
    let score = |bits: Option<i64>| bits.map_or(Score::NEUTRAL, Score::of_bits);
    let before = score(sides.worker);
    let after = before.after(success, score(sides.hirer));
    let verdict = table::Verdict {
        job,
        worker,
        hirer,
        success,
        before: before.bits(),
        after: after.bits(),
        at: txn.now(),
    };
    if table::judge(&txn.tx, &verdict).await? && before != after {
        skills::rescore(&txn.tx, worker, after.bits()).await?;
    }
    Ok(())
}

/// An agent's score as it stands.
pub(crate) async fn score(tx: &Tx<'_>, agent: i64) -> Result<Score> {
    Ok(table::score(tx, agent)
        .await?
        .map_or(Score::NEUTRAL, |(bits, _)| Score::of_bits(bits)))
}

/// `GET /reputation/{agent}`
pub async fn reputation(_who: &Principal, hub: &Hub, name: &str) -> Result<Reputation> {
    let agent = match Name::parse("agent_id", name) {
        Ok(name) => find(hub, &name).await?,
        // Nobody can have a name that is not one.
        Err(_) => None,
    };
    let agent = agent.ok_or(Code::AgentNotFound)?;
    let id = agent.id;
    let (known, history) = hub
        .store()
        .read(async move |tx| {
            Ok((
                table::score(tx, id).await?,
                table::history(tx, id, limits::JUDGEMENTS_SHOWN).await?,
            ))
        })
        .await?;
    let (score, stats) = known.map_or((Score::NEUTRAL, Stats::default()), |(bits, stats)| {
        (Score::of_bits(bits), stats)
    });
    Ok(Reputation {
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

    fn score() -> impl Strategy<Value = Score> {
        prop_oneof![Just(0.0), Just(100.0), Just(50.0), 0.0..=100.0].prop_map(Score::at_least)
    }

    /// JOB-23, JOB-24: the numbers that follow from the document by hand.
    #[test]
    fn the_first_job_of_a_newcomer_is_worth_what_the_document_says() {
        assert_eq!(Score::NEUTRAL.after(true, Score::NEUTRAL).value(), 51.0);
        assert_eq!(Score::NEUTRAL.after(false, Score::NEUTRAL).value(), 45.5);
        assert_eq!(
            Score::NEUTRAL.after(true, Score::at_least(100.0)).value(),
            52.0
        );
        assert_eq!(
            Score::NEUTRAL.after(true, Score::at_least(0.0)).value(),
            50.0
        );
        assert_eq!(
            Score::at_least(99.5)
                .after(true, Score::at_least(100.0))
                .value(),
            100.0
        );
        assert_eq!(
            Score::at_least(4.0).after(false, Score::NEUTRAL).value(),
            0.0
        );
    }

    proptest! {
        /// JOB-25
        #[test]
        fn a_score_stays_between_its_ends(start in score(), jobs in prop::collection::vec((any::<bool>(), score()), 0..200)) {
            let mut now = start;
            for (success, hirer) in jobs {
                now = now.after(success, hirer);
                prop_assert!((0.0..=100.0).contains(&now.value()) && now.value().is_sign_positive());
            }
        }

        /// JOB-23…26: the formula, and nothing of it lost on the way to the store and back
        #[test]
        fn a_job_moves_a_score_as_printed(old in score(), hirer in score(), success in any::<bool>()) {
            let printed = if success { old.value() + 2.0 * hirer.value() / 100.0 } else { old.value() - 3.0 * 1.5 };
            let new = old.after(success, hirer);
            prop_assert_eq!(new.value(), printed.clamp(0.0, 100.0));
            prop_assert_eq!(Score::of_bits(new.bits()), new);
        }

        /// JOB-26
        #[test]
        fn a_better_hirer_never_gives_less(old in score(), one in score(), other in score()) {
            let (low, high) = if one < other { (one, other) } else { (other, one) };
            prop_assert!(old.after(true, low) <= old.after(true, high));
            prop_assert_eq!(old.after(false, low), old.after(false, high));
        }

        /// D-31
        #[test]
        fn bits_sort_like_scores(one in score(), other in score()) {
            prop_assert_eq!(one.bits().cmp(&other.bits()), one.value().total_cmp(&other.value()));
        }
    }
}
