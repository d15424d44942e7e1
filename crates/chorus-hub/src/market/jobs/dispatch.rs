//! Dispatches a job to its worker's endpoint, and interprets the answer.

use super::finish::{self, JobEnding};
use crate::Result;
use crate::context::HubContext;
use crate::delivery::outgoing::webhook_signature::SignatureHeaders;
use crate::delivery::outgoing::{PostError, WebhookAnswer};
use crate::store::jobs::{self, JobRecord};
use crate::store::{EntryKind, JobEvent, JobId, JobState, NewLogEntry, principals};
use bytes::Bytes;
use chorus_wire::market::job::JobResult;
use chorus_wire::{ErrorCode, limits};
use serde_json::Value;

/// The URL to which an agent's jobs are posted; `None` when the endpoint is no valid URL.
pub(super) fn jobs_url(api_endpoint: &str) -> Option<String> {
    let mut url = url::Url::parse(api_endpoint).ok()?;
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with("/jobs") {
        url.set_path(&format!("{path}/jobs"));
    }
    Some(url.into())
}

/// Dispatches a job on a task of its own, because the requester has its answer already.
pub(super) fn spawn_dispatch(hub: &HubContext, job_row: JobId) {
    let hub = hub.clone();
    tokio::spawn(async move {
        if let Err(error) = dispatch_job(&hub, job_row).await {
            tracing::warn!(%error, cause = error.cause, "a job was not dispatched; the dispatch will be retried");
        }
    });
}

/// Dispatches jobs again whose dispatch was interrupted by a shutdown or found no free request
/// slot. So a worker may get a job twice, with the same job_id.
pub(super) async fn retry_waiting_dispatches(hub: &HubContext) -> Result<()> {
    let now = hub.clock().now();
    let ids = hub
        .store()
        .read(async move |tx| {
            Ok(jobs::list_undispatched_jobs(tx, now, crate::limits::JOBS_BATCH).await?)
        })
        .await?;
    for id in ids {
        let leased = hub
            .store()
            .write(async move |txn| {
                let lease_until = txn.now().saturating_add(crate::limits::OUTBOX_LEASE);
                Ok(jobs::lease_dispatch(&txn.tx, id, txn.now(), lease_until).await?)
            })
            .await?;
        if leased {
            spawn_dispatch(hub, id);
        }
    }
    Ok(())
}

async fn dispatch_job(hub: &HubContext, job_row: JobId) -> Result<()> {
    let found = hub
        .store()
        .read(async move |tx| match jobs::find_job(tx, job_row).await? {
            Some(job) => {
                let worker = principals::find_agent(tx, job.worker).await?;
                Ok(Some((job, worker)))
            }
            None => Ok(None),
        })
        .await?;
    let Some((job, worker)) = found.filter(|(job, _)| job.state == JobState::Held) else {
        return Ok(());
    };
    let Some(url) = job.endpoint.clone() else {
        return dispatch_to_inbox(hub, job).await.map(drop);
    };
    let body = Bytes::from(job.body.clone());
    let signed = match &worker {
        Some(worker) => hub.sign_for_agent(worker, &format!("job_{}", job.job_id), &body),
        None => Ok(SignatureHeaders::default()),
    };
    let answer = match signed {
        Ok(headers) => {
            hub.outgoing_client()
                .post(job.payee.into(), &url, &headers.pairs(), body)
                .await
        }
        Err(error) => Err(error),
    };
    match interpret_dispatch_answer(&answer) {
        DispatchOutcome::Accepted => mark_dispatched(hub, job.id).await,
        DispatchOutcome::Ended(ending) => finish_dispatched_job(hub, job.id, ending).await,
        DispatchOutcome::Unreachable => handle_unreachable_worker(hub, job).await,
        // The job stays held, and its dispatch is retried.
        DispatchOutcome::RetryLater => Ok(()),
    }
}

/// The result of a dispatch to the worker's endpoint.
enum DispatchOutcome {
    /// The worker has the job and will report.
    Accepted,
    Ended(JobEnding),
    /// The endpoint cannot be reached.
    Unreachable,
    RetryLater,
}

fn interpret_dispatch_answer(
    answer: &std::result::Result<WebhookAnswer, PostError>,
) -> DispatchOutcome {
    let failed = |code: &str, message: String| {
        DispatchOutcome::Ended(JobEnding::Failed {
            code: code.to_owned(),
            message,
            took_ms: None,
            affects_reputation: true,
        })
    };
    match answer {
        Ok(answer) if (200..300).contains(&answer.status) => match JobResult::parse(&answer.body) {
            Ok(result) => DispatchOutcome::Ended(finish::ending_from_result(result)),
            Err(_) => DispatchOutcome::Accepted,
        },
        Ok(answer) => {
            let reply = answer.parse_json().unwrap_or_default();
            let text = |key: &str, max_chars: usize| {
                Some(
                    reply
                        .get(key)
                        .and_then(Value::as_str)?
                        .chars()
                        .filter(|c| *c != '\0')
                        .take(max_chars)
                        .collect::<String>(),
                )
            };
            let code = text("error_code", limits::LABEL_CHARS).filter(|code| !code.is_empty());
            let message = text("error_message", limits::DETAIL_CHARS);
            failed(
                code.as_deref()
                    .unwrap_or(ErrorCode::ExecutionError.as_str()),
                message
                    .unwrap_or_else(|| format!("the agent's endpoint answered {}", answer.status)),
            )
        }
        // The worker may have accepted the job: its deadline decides.
        Err(PostError::TimedOut) => DispatchOutcome::Accepted,
        Err(PostError::TooLarge) => failed(
            ErrorCode::ExecutionError.as_str(),
            "the agent answered with more than this hub reads".into(),
        ),
        Err(PostError::Busy) => DispatchOutcome::RetryLater,
        Err(PostError::Blocked | PostError::Unreachable(_) | PostError::Broken) => {
            DispatchOutcome::Unreachable
        }
    }
}

async fn mark_dispatched(hub: &HubContext, job_row: JobId) -> Result<()> {
    hub.store()
        .write(async move |txn| {
            super::advance_job(txn, job_row, JobState::Held, JobEvent::Dispatch)
                .await
                .map(drop)
        })
        .await
}

async fn finish_dispatched_job(hub: &HubContext, job_row: JobId, ending: JobEnding) -> Result<()> {
    match finish::finish_job(hub, job_row, ending).await {
        Ok(_) => Ok(()),
        // The job was closed meanwhile, and that ending stands.
        Err(error) if error.code == ErrorCode::JobClosed => Ok(()),
        Err(error) if error.code == ErrorCode::BudgetInsufficient => {
            let message = "the agent asked for more than the agreed price".to_owned();
            let code = ErrorCode::ExecutionError.as_str().to_owned();
            let ending = JobEnding::Failed {
                code,
                message,
                took_ms: None,
                affects_reputation: true,
            };
            finish::finish_job(hub, job_row, ending).await.map(drop)
        }
        Err(error) => Err(error),
    }
}

/// Marks the worker as offline. If it has an open stream all the same, the job goes to its
/// inbox. Otherwise the job fails, which does not count against the worker's reputation.
async fn handle_unreachable_worker(hub: &HubContext, job: JobRecord) -> Result<()> {
    let worker = job.worker;
    let agent = hub
        .store()
        .read(async move |tx| Ok(principals::find_agent(tx, worker).await?))
        .await?;
    if let Some(agent) = &agent {
        hub.identity().record_refusal(agent.id);
    }
    if hub.live_streams().is_online(worker.into()) && agent.is_some() {
        return dispatch_to_inbox(hub, job).await;
    }
    let ending = JobEnding::Failed {
        code: ErrorCode::AgentOffline.as_str().into(),
        message: ErrorCode::AgentOffline.sentence().into(),
        took_ms: None,
        affects_reputation: false,
    };
    finish_dispatched_job(hub, job.id, ending).await
}

async fn dispatch_to_inbox(hub: &HubContext, job: JobRecord) -> Result<()> {
    hub.store()
        .write(async move |txn| {
            if super::advance_job(txn, job.id, JobState::Held, JobEvent::Dispatch).await? {
                txn.append_entry(NewLogEntry {
                    subject: job.worker.into(),
                    subject_name: job.worker_name.clone(),
                    kind: EntryKind::Job,
                    actor: job.requester.into(),
                    actor_name: job.requester_name.clone(),
                    body: job.body.as_str().into(),
                    fallback: None,
                });
            }
            Ok(())
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::jobs_url;

    ///
    #[test]
    fn jobs_go_to_the_endpoint_or_to_jobs_under_it() {
        for (endpoint, expected) in [
            ("https://a.example/jobs", "https://a.example/jobs"),
            ("https://a.example", "https://a.example/jobs"),
            ("https://a.example/v1/", "https://a.example/v1/jobs"),
            ("https://a.example/v1?k=1", "https://a.example/v1/jobs?k=1"),
        ] {
            assert_eq!(jobs_url(endpoint).as_deref(), Some(expected), "{endpoint}");
        }
        // The document's example: its port is a word, so nothing can be posted there.
        assert_eq!(jobs_url("https://agent-host:port/jobs"), None);
    }
}
