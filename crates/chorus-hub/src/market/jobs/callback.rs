//! Job callbacks: a job's result, posted to the URL that its requester gave.

use crate::Result;
use crate::context::{HubContext, WeakContext};
use crate::delivery::outbox::{OutboxHandler, PostOutcome, next_attempt_at};
use crate::delivery::outgoing::PostError;
use crate::delivery::outgoing::webhook_signature::SignatureHeaders;
use crate::store::outbox::{self, OutboxRow};
use crate::store::{jobs, principals, record_activity};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;

/// Posts the outbox rows of job callbacks.
pub(crate) struct JobCallbackHandler(pub WeakContext);

impl OutboxHandler for JobCallbackHandler {
    fn attempt(&self, leased_row: OutboxRow) -> BoxFuture<'_, Result<()>> {
        async move {
            match self.0.upgrade() {
                Some(hub) => post_job_callback(&hub, leased_row).await,
                None => Ok(()),
            }
        }
        .boxed()
    }
}

async fn post_job_callback(hub: &HubContext, mut leased_row: OutboxRow) -> Result<()> {
    let url = std::mem::take(&mut leased_row.url);
    let body = std::mem::take(&mut leased_row.body);
    let outcome = match sign_callback(hub, &leased_row.lane, &body).await? {
        Ok(headers) => {
            hub.delivery()
                .post_leased_row(&leased_row, &url, &headers.pairs(), body)
                .await
        }
        Err(error) => PostOutcome::Blocked(error.to_string()),
    };
    let retry_at = next_attempt_at(&leased_row, hub.expiry_clock());
    let given_up = hub
        .store()
        .write(async move |txn| {
            match (&outcome, retry_at) {
                (PostOutcome::Accepted | PostOutcome::Rejected { .. }, _) => {
                    outbox::delete_leased_row(&txn.tx, &leased_row).await?;
                    Ok(false)
                }
                (PostOutcome::Retry(_), Some(due_at)) => {
                    outbox::reschedule_row(&txn.tx, &leased_row, due_at).await?;
                    Ok(false)
                }
                (PostOutcome::Retry(reason), None) | (PostOutcome::Blocked(reason), _) => {
                    let given_up = outbox::delete_leased_row(&txn.tx, &leased_row).await?;
                    if given_up {
                        // The result stays on the inbox and can be fetched. The URL may contain a secret, so it is not recorded.
                        record_activity(
                            txn,
                            "job_callback_failed",
                            &json!({"job_id": leased_row.lane, "detail": reason}),
                        );
                    }
                    Ok(given_up)
                }
            }
        })
        .await?;
    if given_up {
        metrics::counter!("chorus_outbox_given_up_total").increment(1);
    }
    Ok(())
}

/// The signature of the requester's own endpoint secret: the callback is another endpoint of the requester.
async fn sign_callback(
    hub: &HubContext,
    job_id: &str,
    body: &str,
) -> Result<std::result::Result<SignatureHeaders, PostError>> {
    let wanted = job_id.to_owned();
    let requester = hub
        .store()
        .read(
            async move |tx| match jobs::find_job_by_job_id(tx, &wanted).await? {
                Some(job) => Ok(principals::find_agent(tx, job.requester).await?),
                None => Ok(None),
            },
        )
        .await?;
    Ok(match requester {
        Some(requester) => {
            hub.sign_for_agent(&requester, &format!("job_result_{job_id}"), body.as_bytes())
        }
        None => Ok(SignatureHeaders::default()),
    })
}
