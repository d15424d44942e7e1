//! What is owed to others by HTTP: posted, retried with growing pauses, and given up aloud.

use super::outgoing::PostError;
use crate::channel::member_delivery;
use crate::store::outbox::{self, NewOutboxRow, OutboxRow, RetryClass};
use crate::store::record_activity;
use crate::store::{DbError, WriteTxn};
use crate::{Hub, Result};
use bytes::Bytes;
use chorus_wire::{limits, time::UnixMicros};
use serde_json::json;
use std::time::Duration;

/// Why something is posted; it decides what giving it up leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostPurpose {
    /// A job's result, to its orchestrator's `callback_url`.
    JobCallback,
    /// What was said in a room, to a member's connection string.
    ChannelDelivery,
}

impl PostPurpose {
    const ALL: [Self; 2] = [Self::JobCallback, Self::ChannelDelivery];

    const fn as_str(self) -> &'static str {
        match self {
            Self::JobCallback => "callback",
            Self::ChannelDelivery => "channel",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|purpose| purpose.as_str() == text)
    }
}

/// Owes a POST; to one for whom it failed before, it waits with those. It goes out after the commit: ring [`Hub::owes`] then.
pub(crate) async fn enqueue_post(
    txn: &WriteTxn<'_>,
    purpose: PostPurpose,
    sort: RetryClass,
    lane: &str,
    url: &str,
    body: &str,
) -> std::result::Result<(), DbError> {
    let new_row = NewOutboxRow {
        purpose: purpose.as_str(),
        lane,
        url,
        body,
        retry_class: sort,
    };
    outbox::enqueue_post(&txn.tx, &new_row, txn.now()).await
}

/// What became of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PostOutcome {
    Accepted,
    /// It said no, and another attempt would hear the same. `gone`: nobody is there any more (404, 410).
    Rejected {
        gone: bool,
    },
    /// It could not be reached, or it broke.
    Retry(String),
    /// This hub does not reach such an address.
    Blocked(String),
}

/// Only a receiver that could not be reached or that broke is tried again. What it says besides its status is not read.
fn classify_answer(answer: &std::result::Result<u16, PostError>) -> PostOutcome {
    match answer {
        Ok(200..=299) => PostOutcome::Accepted,
        Ok(status @ 500..) => PostOutcome::Retry(format!("the receiver answered {status}")),
        Ok(status) => PostOutcome::Rejected {
            gone: matches!(status, 404 | 410),
        },
        Err(PostError::TooLarge) => PostOutcome::Rejected { gone: false },
        Err(PostError::Blocked) => PostOutcome::Blocked(PostError::Blocked.to_string()),
        Err(
            error @ (PostError::Unreachable(_)
            | PostError::TimedOut
            | PostError::Broken
            | PostError::Busy),
        ) => PostOutcome::Retry(error.to_string()),
    }
}

/// One attempt and what follows from it.
pub(super) async fn attempt_post(hub: &Hub, leased_row: OutboxRow) -> Result<()> {
    let Some(purpose) = PostPurpose::parse(&leased_row.purpose) else {
        // Of a newer hub: it stays for that one.
        return Ok(());
    };
    match purpose {
        PostPurpose::JobCallback => post_job_callback(hub, leased_row).await,
        PostPurpose::ChannelDelivery => member_delivery::attempt_delivery(hub, leased_row).await,
    }
}

/// Posts and judges. A hub that stood still past its lease posts nothing: another has it, and one of them is enough (D-89).
pub(crate) async fn post_leased_row(
    hub: &Hub,
    leased_row: &OutboxRow,
    url: &str,
    headers: &[(&str, &str)],
    body: String,
) -> PostOutcome {
    if leased_row.is_lease_expired(hub.clock().now()) {
        return PostOutcome::Retry("the hub stood still until its time was over".into());
    }
    classify_answer(
        &hub.outgoing_client()
            .post_status_only(url, headers, Bytes::from(body))
            .await,
    )
}

async fn post_job_callback(hub: &Hub, mut leased_row: OutboxRow) -> Result<()> {
    let (url, body) = (
        std::mem::take(&mut leased_row.url),
        std::mem::take(&mut leased_row.body),
    );
    let outcome = post_leased_row(hub, &leased_row, &url, &[], body).await;
    let retry_at = next_attempt_at(&leased_row, hub.clock().now());
    hub.store()
        .write(async move |txn| {
            match (&outcome, retry_at) {
                (PostOutcome::Accepted | PostOutcome::Rejected { .. }, _) => {
                    outbox::delete_leased_row(&txn.tx, &leased_row).await?;
                }
                (PostOutcome::Retry(_), Some(due_at)) => {
                    outbox::reschedule_row(&txn.tx, &leased_row, due_at).await?
                }
                (PostOutcome::Retry(reason), None) | (PostOutcome::Blocked(reason), _) => {
                    if outbox::delete_leased_row(&txn.tx, &leased_row).await? {
                        // The result stays on the inbox and can be asked for. Never the URL: it may hold a secret.
                        record_activity(
                            txn,
                            "job_callback_failed",
                            &json!({"job_id": leased_row.lane, "detail": reason}),
                        );
                    }
                }
            }
            Ok(())
        })
        .await
}

/// When to try again; `None` when it has been tried for long enough.
pub(crate) fn next_attempt_at(leased_row: &OutboxRow, now: UnixMicros) -> Option<UnixMicros> {
    let due_at = now.saturating_add(backoff(leased_row.attempts, rand::random::<f64>()));
    (due_at
        < leased_row
            .created_at
            .saturating_add(limits::OUTBOX_GIVE_UP_AFTER))
    .then_some(due_at)
}

/// 1 s, 2 s, 4 s … 5 min, and up to half as much on top, so that those who failed together do not come back together.
fn backoff(failures: i64, jitter: f64) -> Duration {
    let doubled = limits::OUTBOX_BACKOFF_FIRST.saturating_mul(1 << failures.clamp(0, 16));
    doubled
        .mul_f64(1.0 + jitter / 2.0)
        .min(limits::OUTBOX_BACKOFF_MAX)
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
                let pause = backoff(failures, jitter).as_secs_f64();
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
        let clock = crate::Clock::manual_at(UnixMicros(1_774_000_000_000_000));
        let options = crate::HubOptions {
            clock: clock.clone(),
            allow_private_endpoints: true,
            ..crate::HubOptions::for_data_dir(dir.path())
        };
        let hub = Hub::open(options).await.unwrap();
        let lease = limits::OUTBOX_LEASE;
        // Due only in an hour, so that the hub's own errands leave it alone.
        let later = clock.now().saturating_add(Duration::from_secs(3_600));
        let owed = url.clone();
        let put = hub.store().write(async move |txn| {
            outbox::enqueue_post(
                &txn.tx,
                &NewOutboxRow {
                    purpose: "callback",
                    lane: "job",
                    url: &owed,
                    body: "{}",
                    retry_class: RetryClass::New,
                },
                later,
            )
            .await?;
            Ok(outbox::lease_due_rows(
                &txn.tx,
                later,
                lease,
                RetryClass::New,
                1,
                &std::collections::HashSet::new(),
            )
            .await?)
        });
        let mut taken = put.await.unwrap();
        let mut mine = taken.pop().unwrap();
        mine.lease_until = clock.now().0;
        attempt_post(&hub, mine).await.unwrap();
        assert!(
            futures_util::FutureExt::now_or_never(receiver.accept()).is_none(),
            "nobody knocked"
        );
        let left = hub
            .store()
            .read(async |tx| {
                Ok(tx
                    .query_first("select tries, leased from outbox", &[])
                    .await?)
            })
            .await
            .unwrap();
        let left = left.expect("another's row is another's");
        assert_eq!(
            (left.int(0).unwrap(), left.int(1).unwrap()),
            (0, later.saturating_add(lease).0)
        );
    }

    ///
    #[test]
    fn only_what_could_not_be_reached_or_broke_is_tried_again() {
        let answered = |status| classify_answer(&Ok(status));
        for status in [200, 202, 204] {
            assert_eq!(answered(status), PostOutcome::Accepted, "{status}");
        }
        for (status, gone) in [
            (302, false),
            (400, false),
            (404, true),
            (410, true),
            (429, false),
        ] {
            assert_eq!(answered(status), PostOutcome::Rejected { gone }, "{status}");
        }
        assert!(matches!(answered(503), PostOutcome::Retry(_)));
        assert!(matches!(
            classify_answer(&Err(PostError::TimedOut)),
            PostOutcome::Retry(_)
        ));
        assert!(matches!(
            classify_answer(&Err(PostError::Blocked)),
            PostOutcome::Blocked(_)
        ));
    }
}
