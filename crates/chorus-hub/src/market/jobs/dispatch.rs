//! Handing a job over to its worker's endpoint, and what the answer means.

use super::finish::{self, Ending};
use super::{Event, State};
use crate::delivery::outgoing::{Answer, PostError};
use crate::market::liveness;
use crate::store::jobs::{self, Job};
use crate::store::{Kind, NewEntry, principals};
use crate::{Hub, Result};
use bytes::Bytes;
use chorus_wire::market::job::JobResult;
use chorus_wire::{Code, limits};
use serde_json::Value;

/// Where jobs are posted to; `None` when nothing can be posted there.
pub(super) fn endpoint(api_endpoint: &str) -> Option<String> {
    let mut url = url::Url::parse(api_endpoint).ok()?;
    let path = url.path().trim_end_matches('/').to_owned();
    if !path.ends_with("/jobs") {
        url.set_path(&format!("{path}/jobs"));
    }
    Some(url.into())
}

/// On a task of its own: the orchestrator has its answer already.
pub(super) fn start(hub: &Hub, id: i64) {
    let hub = hub.clone();
    tokio::spawn(async move {
        if let Err(error) = hand_over(&hub, id).await {
            tracing::warn!(%error, cause = error.cause, "a job was not handed over; it will be tried again");
        }
    });
}

/// Jobs whose handing over was cut short by a stop, or had no place. A worker may so see a job twice, by the same job_id.
pub(super) async fn sweep(hub: &Hub) -> Result<()> {
    let now = hub.clock().now();
    let ids = hub
        .store()
        .read(async move |tx| Ok(jobs::waiting(tx, now, limits::OUTBOX_AT_ONCE).await?))
        .await?;
    for id in ids {
        let mine = hub
            .store()
            .write(async move |txn| {
                let until = txn.now().plus(limits::OUTBOX_LEASE);
                Ok(jobs::attempt(&txn.tx, id, txn.now(), until).await?)
            })
            .await?;
        if mine {
            start(hub, id);
        }
    }
    Ok(())
}

async fn hand_over(hub: &Hub, id: i64) -> Result<()> {
    let job = hub
        .store()
        .read(async move |tx| Ok(jobs::by_id(tx, id).await?))
        .await?;
    let Some(job) = job.filter(|job| job.state == State::Held) else {
        return Ok(());
    };
    let Some(url) = job.endpoint.clone() else {
        return to_inbox(hub, job).await.map(drop);
    };
    let answer = hub
        .outgoing()
        .post(&url, &[], Bytes::from(job.body.clone()))
        .await;
    match judge(&answer) {
        Handed::Taken => took(hub, job.id).await,
        Handed::Ended(ending) => end(hub, job.id, ending).await,
        Handed::Refused => refused(hub, job).await,
        // It keeps its place and is tried again.
        Handed::NotNow => Ok(()),
    }
}

/// What the worker's endpoint made of a job.
enum Handed {
    /// It works on it, and will report.
    Taken,
    Ended(Ending),
    /// Nobody is there.
    Refused,
    NotNow,
}

fn judge(answer: &std::result::Result<Answer, PostError>) -> Handed {
    let failed = |code: &str, said: String| {
        Handed::Ended(Ending::Failed {
            code: code.to_owned(),
            said,
            took_ms: None,
            judged: true,
        })
    };
    match answer {
        Ok(answer) if (200..300).contains(&answer.status) => match JobResult::parse(&answer.body) {
            Ok(result) => Handed::Ended(finish::ending(result)),
            Err(_) => Handed::Taken,
        },
        Ok(answer) => {
            let said = answer.json().unwrap_or_default();
            let text = |key: &str, most: usize| {
                Some(
                    said.get(key)
                        .and_then(Value::as_str)?
                        .chars()
                        .filter(|c| *c != '\0')
                        .take(most)
                        .collect::<String>(),
                )
            };
            let code = text("error_code", limits::LABEL_CHARS).filter(|code| !code.is_empty());
            let message = text("error_message", limits::DETAIL_CHARS);
            failed(
                code.as_deref().unwrap_or(Code::ExecutionError.as_str()),
                message
                    .unwrap_or_else(|| format!("the agent's endpoint answered {}", answer.status)),
            )
        }
        // It may well be working: the deadline decides.
        Err(PostError::TimedOut) => Handed::Taken,
        Err(PostError::TooLarge) => failed(
            Code::ExecutionError.as_str(),
            "the agent answered with more than this hub reads".into(),
        ),
        Err(PostError::Busy) => Handed::NotNow,
        Err(PostError::Blocked | PostError::Unreachable(_) | PostError::Broken) => Handed::Refused,
    }
}

async fn took(hub: &Hub, id: i64) -> Result<()> {
    hub.store()
        .write(async move |txn| {
            super::advance(txn, id, State::Held, Event::Dispatch)
                .await
                .map(drop)
        })
        .await
}

async fn end(hub: &Hub, id: i64, ending: Ending) -> Result<()> {
    match finish::end(hub, id, ending).await {
        Ok(_) => Ok(()),
        // Something else came first, and that stands.
        Err(error) if error.code == Code::JobClosed => Ok(()),
        Err(error) if error.code == Code::BudgetInsufficient => {
            let said = "the agent asked for more than the budget".to_owned();
            let code = Code::ExecutionError.as_str().to_owned();
            let ending = Ending::Failed {
                code,
                said,
                took_ms: None,
                judged: true,
            };
            finish::end(hub, id, ending).await.map(drop)
        }
        Err(error) => Err(error),
    }
}

/// it is offline from now on. If it listens all the same, the job is on its inbox; else it has come to nothing, which
/// says nothing about how the agent works.
async fn refused(hub: &Hub, job: Job) -> Result<()> {
    let worker = job.worker;
    let agent = hub
        .store()
        .read(async move |tx| Ok(principals::by_id(tx, worker).await?))
        .await?;
    if let Some(agent) = &agent {
        liveness::refused(hub, agent);
    }
    if hub.bus().online(worker) && agent.is_some() {
        return to_inbox(hub, job).await;
    }
    let ending = Ending::Failed {
        code: Code::AgentOffline.as_str().into(),
        said: Code::AgentOffline.sentence().into(),
        took_ms: None,
        judged: false,
    };
    end(hub, job.id, ending).await
}

async fn to_inbox(hub: &Hub, job: Job) -> Result<()> {
    hub.store()
        .write(async move |txn| {
            if super::advance(txn, job.id, State::Held, Event::Dispatch).await? {
                txn.append(NewEntry {
                    subject: job.worker,
                    subject_name: job.worker_name.clone(),
                    kind: Kind::Job,
                    actor: job.orchestrator,
                    actor_name: job.orchestrator_name.clone(),
                    body: job.body.as_str().into(),
                    otherwise: None,
                });
            }
            Ok(())
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::endpoint;

    ///
    #[test]
    fn jobs_go_to_the_endpoint_or_to_jobs_under_it() {
        for (given, posted) in [
            ("https://a.example/jobs", "https://a.example/jobs"),
            ("https://a.example", "https://a.example/jobs"),
            ("https://a.example/v1/", "https://a.example/v1/jobs"),
            ("https://a.example/v1?k=1", "https://a.example/v1/jobs?k=1"),
        ] {
            assert_eq!(endpoint(given).as_deref(), Some(posted), "{given}");
        }
        // As the document prints it: nothing can be posted there.
        assert_eq!(endpoint("https://agent-host:port/jobs"), None);
    }
}
