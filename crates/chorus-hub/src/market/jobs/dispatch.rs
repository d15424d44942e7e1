//! Dispatches a job to its worker's endpoint, and interprets the answer.

use super::next_worker::{self, HandBack};
use super::timeline::{self, NotifiedParty, UpdateDraft};
use super::{callback_secret, report};
use crate::Result;
use crate::context::HubContext;
use crate::delivery::outgoing::webhook_signature::SignatureHeaders;
use crate::delivery::outgoing::{PostError, WebhookAnswer};
use crate::store::jobs::{self, JobRecord};
use crate::store::{
    EntryKind, JobEvent, JobId, JobState, NewLogEntry, WriteTxn, job_expiry, principals,
};
use crate::telemetry;
use bytes::Bytes;
use chorus_wire::market::job::{DispatchedJob, JobOutcome, JobResult, JobStatus, JobUpdateKind};
use chorus_wire::{Error, ErrorCode};
use serde_json::Value;

/// The URL to which an agent's jobs are posted; `None` when the endpoint is no valid URL.
pub(in crate::market) fn jobs_url(api_endpoint: &str) -> Option<String> {
    let mut url = url::Url::parse(api_endpoint).ok()?;
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with("/jobs") {
        url.set_path(&format!("{path}/jobs"));
    }
    Some(url.into())
}

/// Dispatches a job on a task of its own, because the requester has its answer already.
pub(super) fn spawn_dispatch(hub: &HubContext, job_row: JobId) {
    let span = hub.start_span_or_trace("dispatch job");
    let hub = hub.clone();
    tokio::spawn(telemetry::run_in_span(span, async move {
        if let Err(error) = dispatch_job(&hub, job_row).await {
            tracing::warn!(%error, cause = error.cause, "a job was not dispatched; the dispatch will be retried");
        }
    }));
}

/// Dispatches jobs again whose dispatch was interrupted by a shutdown or found no free request
/// slot. So a worker may get a job twice, with the same job_id.
pub(super) async fn retry_waiting_dispatches(hub: &HubContext) -> Result<()> {
    let clock = hub.expiry_clock();
    let ids = hub
        .store()
        .read(async move |tx| {
            Ok(job_expiry::list_undispatched_jobs(tx, clock, crate::limits::JOBS_BATCH).await?)
        })
        .await?;
    for id in ids {
        let leased = hub
            .store()
            .write(async move |txn| {
                Ok(job_expiry::lease_dispatch(&txn.tx, id, txn.expiry_clock()).await?)
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
    let body = Bytes::from(endpoint_body(hub, &job)?);
    let signed = match &worker {
        Some(worker) => hub.sign_for_agent(worker, &format!("job_{}", job.job_id), &body),
        None => Ok(SignatureHeaders::default()),
    };
    let answer = match signed {
        Ok(headers) => post_job(hub, &job, &url, &headers, body).await?,
        Err(error) => Err(error),
    };
    if answer.is_ok() {
        // The agent's endpoint is there, which is a sign of life like a request with its key.
        hub.identity().record_agent_seen(job.worker);
    }
    let outcome = interpret_dispatch_answer(&answer);
    let (label, is_failure) = outcome.span_label();
    telemetry::set_outcome(label, is_failure);
    match outcome {
        DispatchOutcome::Accepted => mark_dispatched(hub, job.id).await,
        DispatchOutcome::Reported(result) => apply_answer(hub, job, result).await,
        DispatchOutcome::Unreachable => handle_unreachable_worker(hub, job).await,
        // The job stays held, and its dispatch is retried.
        DispatchOutcome::RetryLater => Ok(()),
    }
}

/// The job as the worker's endpoint gets it: its callback has a secret, so that a worker without a key can report.
fn endpoint_body(hub: &HubContext, job: &JobRecord) -> Result<String> {
    let mut body: DispatchedJob = serde_json::from_str(&job.body).map_err(Error::internal)?;
    let secret = callback_secret::derive_callback_secret(hub, job);
    body.callback_url = body.callback_url.map(|url| format!("{url}/{secret}"));
    serde_json::to_string(&body).map_err(Error::internal)
}

/// Posts the job. The answer may take as long as the job: once the endpoint has the request, the job is dispatched.
async fn post_job(
    hub: &HubContext,
    job: &JobRecord,
    url: &str,
    headers: &SignatureHeaders,
    body: Bytes,
) -> Result<std::result::Result<WebhookAnswer, PostError>> {
    let client = hub.outgoing_client();
    // The endpoint has as long for a short job as for every other post: a late answer is refused by the job's deadline.
    let max_wait = job
        .time_left(hub.expiry_clock())
        .max(client.handover_time());
    let pairs = headers.pairs();
    let post = client.post_long_work(job.payee.into(), url, &pairs, body, max_wait);
    tokio::pin!(post);
    if let Ok(answer) = tokio::time::timeout(client.handover_time(), &mut post).await {
        return Ok(answer);
    }
    mark_dispatched(hub, job.id).await?;
    Ok(post.await)
}

/// The result of a dispatch to the worker's endpoint.
enum DispatchOutcome {
    /// The worker has the job and will report.
    Accepted,
    /// The answer is a report, or cannot be read as one.
    Reported(Result<JobResult>),
    /// The endpoint cannot be reached.
    Unreachable,
    RetryLater,
}

impl DispatchOutcome {
    /// The outcome in a span, and whether it is a failure.
    fn span_label(&self) -> (&'static str, bool) {
        match self {
            Self::Accepted => ("accepted", false),
            Self::Reported(report) => ("reported", report.is_err()),
            Self::Unreachable => ("unreachable", true),
            Self::RetryLater => ("retry", true),
        }
    }
}

fn interpret_dispatch_answer(
    answer: &std::result::Result<WebhookAnswer, PostError>,
) -> DispatchOutcome {
    match answer {
        Ok(answer) if (200..300).contains(&answer.status) => {
            // Any other 2xx says only that the endpoint has the job.
            if answer
                .parse_json()
                .is_some_and(|reply| is_meant_as_report(&reply))
            {
                DispatchOutcome::Reported(JobResult::parse(&answer.body))
            } else {
                DispatchOutcome::Accepted
            }
        }
        Ok(answer) => DispatchOutcome::Reported(Ok(read_refusal(answer))),
        // The worker may have accepted the job: its deadline decides.
        Err(PostError::TimedOut) => DispatchOutcome::Accepted,
        Err(PostError::TooLarge) => {
            let message = "the agent answered with more than this hub reads".to_owned();
            DispatchOutcome::Reported(Ok(failure_report(None, Some(message))))
        }
        Err(PostError::Busy) => DispatchOutcome::RetryLater,
        Err(PostError::Blocked | PostError::Unreachable(_) | PostError::Broken) => {
            DispatchOutcome::Unreachable
        }
    }
}

/// Whether an answer is meant as a report, also when it has a fault, such as a status in small letters.
fn is_meant_as_report(reply: &Value) -> bool {
    let status = reply.get("status").and_then(Value::as_str);
    let names_status = status.is_some_and(|text| {
        JobStatus::TEXTS
            .iter()
            .any(|status| status.eq_ignore_ascii_case(text))
    });
    names_status || reply.get("output_data").is_some()
}

/// An answer with an error status: a decline or a failure, with what the endpoint says of it (JOB-30).
fn read_refusal(answer: &WebhookAnswer) -> JobResult {
    let reply = answer.parse_json().unwrap_or_default();
    let text = |key: &str| reply.get(key).and_then(Value::as_str).map(str::to_owned);
    let message = text("error_message")
        .unwrap_or_else(|| format!("the agent's endpoint answered {}", answer.status));
    // Only a 4xx is an answer to the job; a 5xx says that the endpoint is broken.
    let code = text("error_code")
        .filter(|code| (400..500).contains(&answer.status) || !report::is_decline(code));
    failure_report(code, Some(message))
}

fn failure_report(error_code: Option<String>, error_message: Option<String>) -> JobResult {
    JobResult {
        job_id: None,
        agent_id: None,
        outcome: JobOutcome::failure(error_code, error_message),
        execution_time_ms: None,
    }
}

/// Applies the report in an endpoint's answer. The hub cannot refuse an answer, so a fault is noted on the job, and the worker may
/// report again until the deadline.
async fn apply_answer(hub: &HubContext, job: JobRecord, result: Result<JobResult>) -> Result<()> {
    let applied = match result {
        Ok(result) => {
            let is_pending = matches!(result.outcome, JobOutcome::Pending(_));
            if is_pending {
                mark_dispatched(hub, job.id).await?;
            }
            report::apply_report(hub, &job.job_id, job.worker, result).await
        }
        Err(error) => Err(error),
    };
    match applied {
        Ok(_) => Ok(()),
        // The job was closed meanwhile or has another worker, and that stands.
        Err(error) if error.code == ErrorCode::JobClosed || error.code == ErrorCode::NotFound => {
            Ok(())
        }
        Err(error) if error.code.status() < 500 => note_refused_answer(hub, job, &error).await,
        Err(error) => Err(error),
    }
}

async fn note_refused_answer(hub: &HubContext, job: JobRecord, error: &Error) -> Result<()> {
    let message = error.message.clone();
    hub.store()
        .write(async move |txn| {
            let Some(mut current) = jobs::find_job(&txn.tx, job.id).await? else {
                return Ok(());
            };
            if current.end.is_some() || current.worker != job.worker {
                return Ok(());
            }
            if current.state == JobState::Held {
                super::move_job(txn, &mut current, JobEvent::Dispatch).await?;
            }
            let draft = UpdateDraft::by_worker(&current, JobUpdateKind::Refused, Some(&message));
            timeline::record_update(txn, &current, draft, &[NotifiedParty::Worker]).await
        })
        .await
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

/// Marks the worker as offline for a moment. If it has an open stream all the same, the job goes to its
/// inbox. Otherwise the next worker gets it, or it fails, which does not count against the worker's reputation.
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
    match next_worker::hand_back(hub, job, HandBack::unreachable()).await {
        Ok(_) => Ok(()),
        Err(error) if error.code == ErrorCode::JobClosed => Ok(()),
        Err(error) => Err(error),
    }
}

async fn dispatch_to_inbox(hub: &HubContext, job: JobRecord) -> Result<()> {
    hub.store()
        .write(async move |txn| {
            if super::advance_job(txn, job.id, JobState::Held, JobEvent::Dispatch).await? {
                append_job_entry(txn, &job);
            }
            Ok(())
        })
        .await
}

/// Puts the job on its worker's inbox.
pub(super) fn append_job_entry(txn: &mut WriteTxn<'_>, job: &JobRecord) {
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
