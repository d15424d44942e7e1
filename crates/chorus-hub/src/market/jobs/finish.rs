//! The end of a job, whichever it is: money, score, record and news in one transaction (R-62, R-63, failures 21–23).

use super::{Event, State, standing};
use crate::delivery::outbox::{self, Purpose};
use crate::identity;
use crate::market::ledger::{self, JobRef};
use crate::market::reputation;
use crate::store::jobs::{self, End, Job};
use crate::store::outbox::Sort;
use crate::store::{Kind, NewEntry, Txn};
use crate::{Hub, Principal, Result};
use chorus_wire::identity::Name;
use chorus_wire::market::credits::Credits;
use chorus_wire::market::job::{self as wire, JobResult, Outcome};
use chorus_wire::{Code, Error, limits};
use futures_util::future::join_all;
use std::sync::Arc;

/// How a job is to end.
#[derive(Clone, Debug)]
pub(super) enum Ending {
    Done {
        /// JSON.
        output: String,
        /// Without one it is what was offered.
        cost: Option<Credits>,
        took_ms: Option<i64>,
    },
    Failed {
        code: String,
        said: String,
        took_ms: Option<i64>,
        /// Whether it says something about the worker.
        judged: bool,
    },
    Cancelled,
    Expired,
}

impl Ending {
    const fn event(&self) -> Event {
        match self {
            Ending::Done { .. } => Event::Succeed,
            Ending::Failed { .. } => Event::Fail,
            Ending::Cancelled => Event::Cancel,
            Ending::Expired => Event::Expire,
        }
    }
}

/// What a worker's report amounts to.
pub(super) fn ending(result: JobResult) -> Ending {
    let took_ms = result.execution_time_ms.map(|ms| ms as i64);
    match result.outcome {
        Outcome::Success {
            output_data,
            execution_cost,
        } => Ending::Done {
            output: output_data.to_string(),
            cost: execution_cost,
            took_ms,
        },
        Outcome::Failure {
            error_code,
            error_message,
        } => Ending::Failed {
            code: error_code.unwrap_or_else(|| Code::ExecutionError.as_str().into()),
            said: error_message,
            took_ms,
            judged: true,
        },
    }
}

/// `POST /jobs/{id}/result`: the worker's word, once.
pub async fn result(
    who: &Principal,
    hub: &Hub,
    job_id: &str,
    result: JobResult,
) -> Result<wire::Job> {
    let me = who.agent()?.id;
    let other_job = result
        .job_id
        .as_deref()
        .is_some_and(|named| named != job_id);
    let other_agent = match &result.agent_id {
        Some(named) => identity::find(hub, &Name::parse("agent_id", named)?)
            .await?
            .is_none_or(|found| found.id != me),
        None => false,
    };
    let may = move |job: &Job| {
        if job.worker != me {
            return Err(Error::new(
                Code::Forbidden,
                "only the agent that does the job reports its result",
            ));
        }
        if other_job {
            return Err(Error::validation("job_id is not the one in the path"));
        }
        if other_agent {
            return Err(Error::new(
                Code::Forbidden,
                "agent_id must be the agent whose key this is",
            ));
        }
        Ok(())
    };
    end_mine(hub, me, job_id, ending(result), may).await
}

/// `POST /jobs/{id}/cancel`: before a result, by whoever asked for it; nobody's score changes.
pub async fn cancel(who: &Principal, hub: &Hub, job_id: &str) -> Result<wire::Job> {
    let me = who.agent()?.id;
    let may = move |job: &Job| match job.orchestrator == me {
        true => Ok(()),
        false => Err(Error::new(
            Code::Forbidden,
            "only the agent that asked for the job cancels it",
        )),
    };
    end_mine(hub, me, job_id, Ending::Cancelled, may).await
}

/// Ends a job that `me` has a part in, if it may. It is looked up where it is ended: a look before would only cost another.
async fn end_mine(
    hub: &Hub,
    me: i64,
    job_id: &str,
    ending: Ending,
    may: impl Fn(&Job) -> Result<()> + Send + 'static,
) -> Result<wire::Job> {
    let job_id = job_id.to_owned();
    let ended = hub.store().write(async move |txn| {
        let job = jobs::by_name(&txn.tx, &job_id)
            .await?
            .filter(|job| job.worker == me || job.orchestrator == me);
        let job = job.ok_or(Code::NotFound)?;
        may(&job)?;
        brought(txn, job, ending.clone()).await
    });
    told(hub, ended.await?)
}

/// Brings the job to this end, or says that it has another one already.
pub(super) async fn end(hub: &Hub, id: i64, ending: Ending) -> Result<wire::Job> {
    let ended = hub.store().write(async move |txn| {
        let job = jobs::by_id(&txn.tx, id).await?.ok_or(Code::NotFound)?;
        brought(txn, job, ending.clone()).await
    });
    told(hub, ended.await?)
}

/// The job at its end, and whether it is the one that was meant.
async fn brought(txn: &mut Txn<'_>, job: Job, ending: Ending) -> Result<(Job, bool)> {
    if job.state.after(ending.event()).is_none() {
        return Err(Code::JobClosed.into());
    }
    // Past its deadline a job expires, whoever looks at it first: nothing depends on when the hub swept.
    let late = txn.now() >= job.deadline && !matches!(ending, Ending::Expired);
    let ending = if late { Ending::Expired } else { ending };
    Ok((close(txn, job, ending).await?, !late))
}

fn told(hub: &Hub, (job, came): (Job, bool)) -> Result<wire::Job> {
    if job.callback_url.is_some() {
        hub.owes();
    }
    if came {
        Ok(standing::shown(&job, false))
    } else {
        Err(Error::new(Code::JobClosed, "the deadline has passed"))
    }
}

/// Ends what is past its deadline.
pub(super) async fn sweep(hub: &Hub) -> Result<()> {
    loop {
        let now = hub.clock().now();
        let due = hub
            .store()
            .read(async move |tx| Ok(jobs::overdue(tx, now, limits::OUTBOX_AT_ONCE).await?))
            .await?;
        if due.is_empty() {
            return Ok(());
        }
        // Together, so that they wait for one commit: whoever lets thousands end at once would hold up every other errand.
        for ended in join_all(due.into_iter().map(|id| end(hub, id, Ending::Expired))).await {
            match ended {
                Ok(_) => {}
                Err(error) if error.code == Code::JobClosed => {}
                Err(error) => return Err(error),
            }
        }
    }
}

async fn close(txn: &mut Txn<'_>, job: Job, ending: Ending) -> Result<Job> {
    let to = job.state.after(ending.event()).ok_or(Code::JobClosed)?;
    let named = JobRef {
        id: job.id,
        job_id: &job.job_id,
    };
    let mut end = End {
        at: txn.now(),
        ..End::default()
    };
    let judged = match ending {
        Ending::Done {
            output,
            cost,
            took_ms,
        } => {
            let paid = cost.unwrap_or(job.cost);
            if paid > job.budget {
                let said = format!("execution_cost is above the budget of {}", job.budget);
                return Err(Error::new(Code::BudgetInsufficient, said));
            }
            ledger::settle(txn, named, job.payer, job.payee, paid).await?;
            end = End {
                paid: Some(paid),
                took_ms,
                output: Some(output),
                ..end
            };
            Some(true)
        }
        Ending::Failed {
            code,
            said,
            took_ms,
            judged,
        } => {
            ledger::release(txn, named, job.payer).await?;
            end = End {
                paid: Some(Credits::ZERO),
                took_ms,
                error_code: Some(code),
                error: Some(said),
                ..end
            };
            judged.then_some(false)
        }
        Ending::Cancelled => {
            ledger::release(txn, named, job.payer).await?;
            end = End {
                paid: Some(Credits::ZERO),
                error: Some("the job was cancelled".into()),
                ..end
            };
            None
        }
        Ending::Expired => {
            ledger::release(txn, named, job.payer).await?;
            end = End {
                paid: Some(Credits::ZERO),
                error: Some("no result came before the deadline".into()),
                ..end
            };
            // R-62, D-96: a job that was never handed over says nothing about its worker.
            (job.state == State::Dispatched).then_some(false)
        }
    };
    // what was hired at home earns nothing, wherever its agents belong by now.
    if let Some(success) = judged.filter(|_| job.payer != job.payee) {
        reputation::judge(txn, job.id, job.worker, job.orchestrator, success).await?;
    }
    jobs::close(&txn.tx, job.id, to, &end).await?;
    *txn.counts.market.jobs.of(job.state) -= 1;
    *txn.counts.market.jobs.of(to) += 1;
    let job = Job {
        state: to,
        end: Some(end),
        ..job
    };
    tell(txn, &job).await?;
    Ok(job)
}

/// The orchestrator hears of it on its inbox and at its callback; the worker, when it was taken from it.
async fn tell(txn: &mut Txn<'_>, job: &Job) -> Result<()> {
    let body: Arc<str> = serde_json::to_string(&standing::shown(job, false))
        .map_err(Error::internal)?
        .into();
    let news = |subject: i64, subject_name| NewEntry {
        subject,
        subject_name,
        kind: Kind::JobResult,
        actor: job.worker,
        actor_name: job.worker_name.clone(),
        body: body.clone(),
        otherwise: None,
    };
    if let Some(url) = &job.callback_url {
        outbox::owe(txn, Purpose::Callback, Sort::New, &job.job_id, url, &body).await?;
    }
    let taken_away = match job.state {
        State::Cancelled | State::Expired => job.worker != job.orchestrator,
        State::Requested | State::Held | State::Dispatched | State::Done | State::Failed => false,
    };
    if taken_away {
        txn.append(news(job.worker, job.worker_name.clone()));
    }
    txn.append(news(job.orchestrator, job.orchestrator_name.clone()));
    Ok(())
}
