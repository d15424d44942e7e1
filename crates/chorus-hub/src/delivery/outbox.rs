//! What is owed to others by HTTP: posted, retried with growing pauses, and given up aloud.

use super::outgoing::PostError;
use crate::channel::deliver;
use crate::ops::happened;
use crate::store::outbox::{self, Owed, Sort, Taken};
use crate::store::{DbError, Txn};
use crate::{Hub, Result};
use bytes::Bytes;
use chorus_wire::{limits, time::Micros};
use serde_json::json;
use std::time::Duration;

/// Why something is posted; it decides what giving it up leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A job's result, to its orchestrator's `callback_url`.
    Callback,
    /// What was said in a room, to a member's connection string.
    Channel,
}

impl Purpose {
    const ALL: [Self; 2] = [Self::Callback, Self::Channel];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Callback => "callback",
            Self::Channel => "channel",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|purpose| purpose.as_str() == text)
    }
}

/// Owes a POST; to one for whom it failed before, it waits with those. It goes out after the commit: ring [`Hub::owes`] then.
pub(crate) async fn owe(
    txn: &Txn<'_>,
    purpose: Purpose,
    sort: Sort,
    lane: &str,
    url: &str,
    body: &str,
) -> std::result::Result<(), DbError> {
    let owed = Owed {
        purpose: purpose.as_str(),
        lane,
        url,
        body,
        sort,
    };
    outbox::put(&txn.tx, &owed, txn.now()).await
}

/// What became of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Taken,
    /// It said no, and another attempt would hear the same. `gone`: nobody is there any more (404, 410).
    Refused {
        gone: bool,
    },
    /// It could not be reached, or it broke.
    Again(String),
    /// This hub does not reach such an address.
    Never(String),
}

/// Only a receiver that could not be reached or that broke is tried again. What it says besides its status is not read.
fn judge(answer: &std::result::Result<u16, PostError>) -> Came {
    match answer {
        Ok(200..=299) => Came::Taken,
        Ok(status @ 500..) => Came::Again(format!("the receiver answered {status}")),
        Ok(status) => Came::Refused {
            gone: matches!(status, 404 | 410),
        },
        Err(PostError::TooLarge) => Came::Refused { gone: false },
        Err(PostError::Blocked) => Came::Never(PostError::Blocked.to_string()),
        Err(
            error @ (PostError::Unreachable(_)
            | PostError::TimedOut
            | PostError::Broken
            | PostError::Busy),
        ) => Came::Again(error.to_string()),
    }
}

/// One attempt and what follows from it.
pub(super) async fn attempt(hub: &Hub, one: Taken) -> Result<()> {
    let Some(purpose) = Purpose::parse(&one.purpose) else {
        // Of a newer hub: it stays for that one.
        return Ok(());
    };
    match purpose {
        Purpose::Callback => callback(hub, one).await,
        Purpose::Channel => deliver::attempt(hub, one).await,
    }
}

/// Posts and judges. A hub that stood still past its lease posts nothing: another has it, and one of them is enough (D-89).
pub(crate) async fn post(
    hub: &Hub,
    one: &Taken,
    url: &str,
    headers: &[(&str, &str)],
    body: String,
) -> Came {
    if one.is_over(hub.clock().now()) {
        return Came::Again("the hub stood still until its time was over".into());
    }
    judge(&hub.outgoing().knock(url, headers, Bytes::from(body)).await)
}

async fn callback(hub: &Hub, mut one: Taken) -> Result<()> {
    let (url, body) = (std::mem::take(&mut one.url), std::mem::take(&mut one.body));
    let came = post(hub, &one, &url, &[], body).await;
    let again = next(&one, hub.clock().now());
    hub.store()
        .write(async move |txn| {
            match (&came, again) {
                (Came::Taken | Came::Refused { .. }, _) => drop(outbox::done(&txn.tx, &one).await?),
                (Came::Again(_), Some(due)) => outbox::later(&txn.tx, &one, due).await?,
                (Came::Again(why), None) | (Came::Never(why), _) => {
                    if outbox::done(&txn.tx, &one).await? {
                        // The result stays on the inbox and can be asked for. Never the URL: it may hold a secret.
                        happened(
                            txn,
                            "job_callback_failed",
                            &json!({"job_id": one.lane, "detail": why}),
                        );
                    }
                }
            }
            Ok(())
        })
        .await
}

/// When to try again; `None` when it has been tried for long enough.
pub(crate) fn next(one: &Taken, now: Micros) -> Option<Micros> {
    let due = now.plus(pause(one.tries, rand::random::<f64>()));
    (due < one.created_at.plus(limits::OUTBOX_FOR)).then_some(due)
}

/// 1 s, 2 s, 4 s … 5 min, and up to half as much on top, so that those who failed together do not come back together.
fn pause(failures: i64, jitter: f64) -> Duration {
    let doubled = limits::OUTBOX_PAUSE.saturating_mul(1 << failures.clamp(0, 16));
    doubled
        .mul_f64(1.0 + jitter / 2.0)
        .min(limits::OUTBOX_PAUSE_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    ///
    #[test]
    fn pauses_grow_from_a_second_to_five_minutes() {
        for (failures, least, most) in [
            (0, 1, 2),
            (1, 2, 3),
            (5, 32, 48),
            (9, 300, 300),
            (1_000, 300, 300),
        ] {
            for jitter in [0.0, 0.5, 0.999] {
                let pause = pause(failures, jitter).as_secs_f64();
                assert!(
                    (f64::from(least)..=f64::from(most)).contains(&pause),
                    "{failures}: {pause}"
                );
            }
        }
    }

    /// D-89
    #[tokio::test]
    async fn a_hub_that_stood_still_past_its_lease_posts_nothing_and_settles_nothing_of_anothers() {
        let dir = tempfile::tempdir().unwrap();
        let receiver = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", receiver.local_addr().unwrap());
        let clock = crate::Clock::held(Micros(1_774_000_000_000_000));
        let options = crate::Options {
            clock: clock.clone(),
            allow_private_endpoints: true,
            ..crate::Options::at(dir.path())
        };
        let hub = Hub::open(options).await.unwrap();
        let lease = limits::OUTBOX_LEASE;
        // Due only in an hour, so that the hub's own errands leave it alone.
        let later = clock.now().plus(Duration::from_secs(3_600));
        let owed = url.clone();
        let put = hub.store().write(async move |txn| {
            outbox::put(
                &txn.tx,
                &Owed {
                    purpose: "callback",
                    lane: "job",
                    url: &owed,
                    body: "{}",
                    sort: Sort::New,
                },
                later,
            )
            .await?;
            Ok(outbox::take(
                &txn.tx,
                later,
                lease,
                Sort::New,
                1,
                &std::collections::HashSet::new(),
            )
            .await?)
        });
        let mut taken = put.await.unwrap();
        let mut mine = taken.pop().unwrap();
        mine.lease = clock.now().0;
        attempt(&hub, mine).await.unwrap();
        assert!(
            futures_util::FutureExt::now_or_never(receiver.accept()).is_none(),
            "nobody knocked"
        );
        let left = hub
            .store()
            .read(async |tx| Ok(tx.one("select tries, leased from outbox", &[]).await?))
            .await
            .unwrap();
        let left = left.expect("another's row is another's");
        assert_eq!(
            (left.int(0).unwrap(), left.int(1).unwrap()),
            (0, later.plus(lease).0)
        );
    }

    ///
    #[test]
    fn only_what_could_not_be_reached_or_broke_is_tried_again() {
        let answered = |status| judge(&Ok(status));
        for status in [200, 202, 204] {
            assert_eq!(answered(status), Came::Taken, "{status}");
        }
        for (status, gone) in [
            (302, false),
            (400, false),
            (404, true),
            (410, true),
            (429, false),
        ] {
            assert_eq!(answered(status), Came::Refused { gone }, "{status}");
        }
        assert!(matches!(answered(503), Came::Again(_)));
        assert!(matches!(judge(&Err(PostError::TimedOut)), Came::Again(_)));
        assert!(matches!(judge(&Err(PostError::Blocked)), Came::Never(_)));
    }
}
