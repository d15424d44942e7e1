//! The outbox: HTTP posts that must happen even after a crash, retried with backoff and given up with a notice.

use super::Delivery;
use super::outgoing::PostError;
use crate::Result;
use crate::clock_watch::ExpiryClock;
use crate::limits;
use crate::store::outbox::{self, NewOutboxRow, OutboxRow, RetryClass};
use crate::store::{DbError, OwnerId, WriteTxn};
use crate::telemetry::{self, BegunTrace, SpanKind};
use bytes::Bytes;
use chorus_wire::{string_enum, time::UnixMicros};
use futures_util::future::BoxFuture;
use std::time::Duration;

string_enum! {
    /// Why a row is posted; it selects the handler.
    PostPurpose {
        /// A job's result, to its requester's `callback_url`.
        JobCallback "callback",
        /// A channel message, to a member's connection string.
        ChannelDelivery "channel",
    }
}

impl PostPurpose {
    /// The name of the span of an attempt.
    const fn span_name(self) -> &'static str {
        match self {
            Self::JobCallback => "deliver job result",
            Self::ChannelDelivery => "deliver channel message",
        }
    }
}

/// What a post is made of.
pub(crate) struct OutboxPost<'a> {
    pub retry_class: RetryClass,
    /// The posts of one lane go out in order.
    pub lane: &'a str,
    /// The owner of the receiver; `None` for what the operators own.
    pub owner: Option<OwnerId>,
    pub url: &'a str,
    pub body: &'a str,
}

/// Enqueues a post. It goes out after the commit: call [`super::outbox_worker::OutboxWorker::wake`] then.
pub(crate) async fn enqueue_post(
    txn: &WriteTxn<'_>,
    purpose: PostPurpose,
    post: OutboxPost<'_>,
) -> std::result::Result<(), DbError> {
    let new_row = NewOutboxRow {
        purpose: purpose.as_str(),
        lane: post.lane,
        owner: post.owner,
        url: post.url,
        body: post.body,
        retry_class: post.retry_class,
        span_context: txn.span_context(),
    };
    outbox::enqueue_post(&txn.tx, &new_row, txn.now()).await
}

/// The outcome of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PostOutcome {
    Accepted,
    /// The receiver refused it, and would refuse another attempt. `gone`: the receiver no longer exists (404, 410).
    Rejected {
        gone: bool,
        reason: String,
    },
    /// The receiver could not be reached, or it failed.
    Retry(String),
    /// The SSRF guard does not allow the address.
    Blocked(String),
}

impl PostOutcome {
    const fn span_label(&self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected { .. } => "rejected",
            Self::Retry(_) => "retry",
            Self::Blocked(_) => "blocked",
        }
    }
}

/// Only a receiver that could not be reached or that failed is tried again. Of the answer only the status is read.
fn classify_answer(answer: &std::result::Result<u16, PostError>) -> PostOutcome {
    match answer {
        Ok(200..=299) => PostOutcome::Accepted,
        Ok(status @ 500..) => PostOutcome::Retry(format!("the receiver answered {status}")),
        Ok(status) => PostOutcome::Rejected {
            gone: matches!(status, 404 | 410),
            reason: format!("it answered {status}"),
        },
        Err(error @ PostError::TooLarge) => PostOutcome::Rejected {
            gone: false,
            reason: error.to_string(),
        },
        Err(PostError::Blocked) => PostOutcome::Blocked(PostError::Blocked.to_string()),
        Err(
            error @ (PostError::Unreachable(_)
            | PostError::TimedOut
            | PostError::Broken
            | PostError::Busy),
        ) => PostOutcome::Retry(error.to_string()),
    }
}

/// What a protocol does with a leased row of its purpose: post it, and settle the row by the outcome.
pub(crate) trait OutboxHandler: Send + Sync {
    fn attempt(&self, leased_row: OutboxRow) -> BoxFuture<'_, Result<()>>;
}

/// One handler for each purpose. They are registered, because the protocols are above delivery.
pub(crate) struct OutboxHandlers {
    pub job_callback: Box<dyn OutboxHandler>,
    pub channel_delivery: Box<dyn OutboxHandler>,
}

/// Makes one attempt and settles its row.
pub(super) async fn attempt_post(delivery: &Delivery, leased_row: OutboxRow) -> Result<()> {
    let purpose = PostPurpose::parse(&leased_row.purpose);
    let (Some(purpose), Some(handlers)) = (purpose, delivery.outbox_worker().handlers()) else {
        // A purpose that only a newer hub knows: the row stays for that hub.
        return Ok(());
    };
    let handler = match purpose {
        PostPurpose::JobCallback => &handlers.job_callback,
        PostPurpose::ChannelDelivery => &handlers.channel_delivery,
    };
    let Some(recorder) = delivery.span_recorder() else {
        return handler.attempt(leased_row).await;
    };
    let name = purpose.span_name();
    let begun = recorder.begin_trace(leased_row.span_context, name, SpanKind::Internal);
    let BegunTrace { scope, mut span } = begun;
    if let Some(span) = &mut span {
        span.set_number("chorus.attempt", leased_row.attempts + 1);
    }
    let attempted = telemetry::within_scope(Some(scope), handler.attempt(leased_row)).await;
    if let Some(mut span) = span {
        if let Err(error) = &attempted {
            span.fail(error.code.as_str());
        }
        span.finish();
    }
    attempted
}

impl Delivery {
    /// Posts and classifies the answer. A hub that was suspended past its lease posts nothing: another hub has the row (D-89).
    pub(crate) async fn post_leased_row(
        &self,
        leased_row: &OutboxRow,
        url: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> PostOutcome {
        if leased_row.is_lease_expired(self.0.clock.now()) {
            return PostOutcome::Retry("the hub stood still until its time was over".into());
        }
        let answer = self
            .outgoing_client()
            .post_status_only(leased_row.owner.into(), url, headers, Bytes::from(body))
            .await;
        let outcome = classify_answer(&answer);
        telemetry::set_outcome(outcome.span_label(), outcome != PostOutcome::Accepted);
        outcome
    }
}

/// When to try again; `None` when the row has been tried for long enough. By the wall clock alone, a leap would give up what was
/// hardly tried (D-123).
pub(crate) fn next_attempt_at(leased_row: &OutboxRow, clock: ExpiryClock) -> Option<UnixMicros> {
    let pause = backoff(leased_row.attempts, crate::random::random_value::<f64>());
    let give_up_at = leased_row
        .created_at
        .saturating_add(limits::OUTBOX_GIVE_UP_AFTER);
    let present = clock.now_since(leased_row.created_at);
    (present.saturating_add(pause) < give_up_at).then(|| clock.now().saturating_add(pause))
}

/// 1 s, 2 s, 4 s … 5 min, and up to half as much on top, so that posts that failed together are not tried again together.
fn backoff(failures: i64, jitter: f64) -> Duration {
    let doubled = limits::OUTBOX_BACKOFF_FIRST.saturating_mul(1 << failures.clamp(0, 16));
    doubled
        .mul_f64(1.0 + jitter / 2.0)
        .min(limits::OUTBOX_BACKOFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::outbox::PostsInFlight;

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
        let hub = crate::Hub::open(options).await.unwrap();
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
                    owner: None,
                    url: &owed,
                    body: "{}",
                    retry_class: RetryClass::New,
                    span_context: None,
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
                PostsInFlight::default(),
            )
            .await?
            .rows)
        });
        let mut taken = put.await.unwrap();
        let mut mine = taken.pop().unwrap();
        mine.lease_until = clock.now().0;
        attempt_post(hub.delivery(), mine).await.unwrap();
        assert!(
            futures_util::FutureExt::now_or_never(receiver.accept()).is_none(),
            "no request arrived"
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
            let reason = format!("it answered {status}");
            assert_eq!(
                answered(status),
                PostOutcome::Rejected { gone, reason },
                "{status}"
            );
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
