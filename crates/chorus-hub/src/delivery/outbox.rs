//! What is owed to others by HTTP: posted, retried with growing pauses, and given up aloud.

use super::outgoing::{Answer, PostError};
use crate::ops::happened;
use crate::store::outbox::{self, Owed, Taken};
use crate::store::{DbError, Txn};
use crate::{Hub, Result};
use bytes::Bytes;
use chorus_wire::{limits, time::Micros};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

/// Why something is posted; it decides what giving it up leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A job's result, to its orchestrator's `callback_url`.
    Callback,
}

impl Purpose {
    const ALL: [Self; 1] = [Self::Callback];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Callback => "callback",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|purpose| purpose.as_str() == text)
    }

    /// In the transaction in which it is given up. Never the URL: it may hold a secret.
    fn given_up(self, txn: &mut Txn<'_>, one: &Taken, why: &str) {
        match self {
            // The result stays on the inbox and can be asked for.
            Self::Callback => happened(txn, "job_callback_failed", &json!({"job_id": one.lane, "detail": why})),
        }
    }
}

/// Owes a POST. It goes out after the commit: ring [`Hub::owes`] then.
pub(crate) async fn owe(
    txn: &Txn<'_>,
    purpose: Purpose,
    lane: &str,
    url: &str,
    body: &str,
) -> std::result::Result<(), DbError> {
    let owed = Owed { purpose: purpose.as_str(), lane, url, headers: "{}", body };
    outbox::put(&txn.tx, &owed, txn.now()).await
}

/// Posts what is due until nothing is: one round per lane at a time, so that each lane keeps its order.
pub(crate) async fn pass(hub: &Hub) -> Result<()> {
    loop {
        let now = hub.clock().now();
        if !hub.store().read(async move |tx| Ok(outbox::is_due(tx, now).await?)).await? {
            return Ok(());
        }
        let taken = hub
            .store()
            .write(async move |txn| Ok(outbox::take(&txn.tx, txn.now(), limits::OUTBOX_AT_ONCE).await?))
            .await?;
        if taken.is_empty() {
            return Ok(());
        }
        let posts = taken.into_iter().map(|one| post(hub, one));
        for settled in futures_util::future::join_all(posts).await {
            settled?;
        }
    }
}

/// What became of one attempt.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    /// It was taken, or refused for good: another attempt would say the same.
    Through,
    Again(String),
    Never(String),
}

/// Only a receiver that could not be reached or that broke is tried again.
fn judge(answer: &std::result::Result<Answer, PostError>) -> Came {
    match answer {
        Ok(answer) if answer.status >= 500 => Came::Again(format!("the receiver answered {}", answer.status)),
        Ok(_) | Err(PostError::TooLarge) => Came::Through,
        Err(PostError::Blocked) => Came::Never(PostError::Blocked.to_string()),
        Err(error @ (PostError::Unreachable(_) | PostError::TimedOut | PostError::Broken | PostError::Busy)) => {
            Came::Again(error.to_string())
        }
    }
}

async fn post(hub: &Hub, one: Taken) -> Result<()> {
    let headers: BTreeMap<String, String> = serde_json::from_str(&one.headers).unwrap_or_default();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let came = judge(&hub.outgoing().post(&one.url, &headers, Bytes::from(one.body.clone())).await);
    let again = next(&one, hub.clock().now());
    hub.store()
        .write(async move |txn| {
            match (came, again) {
                (Came::Through, _) => {
                    outbox::done(&txn.tx, &one).await?;
                }
                (Came::Again(_), Some(due)) => outbox::later(&txn.tx, &one, due).await?,
                (Came::Again(why), None) | (Came::Never(why), _) => {
                    if outbox::done(&txn.tx, &one).await?
                        && let Some(purpose) = Purpose::parse(&one.purpose)
                    {
                        purpose.given_up(txn, &one, &why);
                    }
                }
            }
            Ok(())
        })
        .await
}

/// When to try again; `None` when it has been tried for long enough.
fn next(one: &Taken, now: Micros) -> Option<Micros> {
    let due = now.plus(pause(one.tries, rand::random::<f64>()));
    (due < one.created_at.plus(limits::OUTBOX_FOR)).then_some(due)
}

/// 1 s, 2 s, 4 s … 5 min, and up to half as much on top, so that those who failed together do not come back together.
fn pause(failures: i64, jitter: f64) -> Duration {
    let doubled = limits::OUTBOX_PAUSE.saturating_mul(1 << failures.clamp(0, 16));
    doubled.mul_f64(1.0 + jitter / 2.0).min(limits::OUTBOX_PAUSE_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn pauses_grow_from_a_second_to_five_minutes() {
        for (failures, least, most) in [(0, 1, 2), (1, 2, 3), (5, 32, 48), (9, 300, 300), (1_000, 300, 300)] {
            for jitter in [0.0, 0.5, 0.999] {
                let pause = pause(failures, jitter).as_secs_f64();
                assert!((f64::from(least)..=f64::from(most)).contains(&pause), "{failures}: {pause}");
            }
        }
    }

    ///
    #[test]
    fn only_what_could_not_be_reached_or_broke_is_tried_again() {
        let answered = |status| judge(&Ok(Answer { status, body: Bytes::new() }));
        for status in [200, 202, 302, 400, 404, 410, 429] {
            assert_eq!(answered(status), Came::Through, "{status}");
        }
        assert!(matches!(answered(503), Came::Again(_)));
        assert!(matches!(judge(&Err(PostError::TimedOut)), Came::Again(_)));
        assert!(matches!(judge(&Err(PostError::Blocked)), Came::Never(_)));
    }
}
