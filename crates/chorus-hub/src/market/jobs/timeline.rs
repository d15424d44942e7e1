//! What happens to a job between its request and its end: progress, a question and its answer, and the events that tell the parties.

use super::{dispatch, move_job, status};
use crate::context::HubContext;
use crate::limits;
use crate::store::job_updates::{self, NewUpdate};
use crate::store::jobs::{self, JobRecord};
use crate::store::{
    AgentId, EntryKind, JobEvent, JobId, JobState, NewLogEntry, WriteTxn, job_board,
};
use crate::{Principal, Result};
use chorus_wire::market::job::{self as wire, DispatchedJob, JobUpdate, JobUpdateKind, WorkerNote};
use chorus_wire::{Error, ErrorCode};
use std::sync::Arc;

/// An update of a job, by the agent that caused it.
pub(super) struct UpdateDraft<'a> {
    pub kind: JobUpdateKind,
    pub agent: AgentId,
    pub agent_name: Arc<str>,
    pub text: Option<&'a str>,
}

impl<'a> UpdateDraft<'a> {
    pub fn by_worker(job: &JobRecord, kind: JobUpdateKind, text: Option<&'a str>) -> Self {
        Self {
            kind,
            agent: job.worker,
            agent_name: job.worker_name.clone(),
            text,
        }
    }

    pub fn by_requester(job: &JobRecord, kind: JobUpdateKind, text: Option<&'a str>) -> Self {
        Self {
            kind,
            agent: job.requester,
            agent_name: job.requester_name.clone(),
            text,
        }
    }
}

/// Which parties get the event `job_update`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotifiedParty {
    Requester,
    /// The worker that has the job, or had it before this update.
    Worker,
}

/// Notes an update in the timeline, and tells the parties. `job` is the job after the update.
pub(super) async fn record_update(
    txn: &mut WriteTxn<'_>,
    job: &JobRecord,
    draft: UpdateDraft<'_>,
    notified: &[NotifiedParty],
) -> Result<()> {
    let now = txn.now();
    let update = NewUpdate {
        job: job.id,
        kind: draft.kind,
        agent: draft.agent,
        text: draft.text,
        at: now,
    };
    job_updates::append_update(&txn.tx, &update).await?;
    let mut body = status::describe_job(job, false);
    body.timeline = Some(vec![JobUpdate {
        kind: draft.kind,
        agent_id: Some(draft.agent_name.to_string()),
        text: draft.text.map(str::to_owned),
        timestamp_utc: now,
    }]);
    let body: Arc<str> = serde_json::to_string(&body)
        .map_err(Error::internal)?
        .into();
    for party in notified {
        let (subject, subject_name) = match party {
            NotifiedParty::Requester => (job.requester, job.requester_name.clone()),
            // A job that goes back has lost its worker already, which is the agent of the update.
            NotifiedParty::Worker if job.has_worker() && draft.agent == job.requester => {
                (job.worker, job.worker_name.clone())
            }
            NotifiedParty::Worker => (draft.agent, draft.agent_name.clone()),
        };
        txn.append_entry(NewLogEntry {
            subject: subject.into(),
            subject_name,
            kind: EntryKind::JobUpdate,
            actor: draft.agent.into(),
            actor_name: draft.agent_name.clone(),
            body: body.clone(),
            fallback: None,
        });
    }
    Ok(())
}

/// What a worker says before its result. Any report renews the lease of a claimed job.
pub(super) async fn apply_worker_note(
    txn: &mut WriteTxn<'_>,
    mut job: JobRecord,
    note: Option<&WorkerNote>,
) -> Result<JobRecord> {
    match note {
        None => {}
        Some(WorkerNote::Progress(text)) => {
            job_updates::store_progress(&txn.tx, job.id, text).await?;
            job.talk.progress = Some(text.clone());
            let draft = UpdateDraft::by_worker(&job, JobUpdateKind::Progress, Some(text));
            record_update(txn, &job, draft, &[NotifiedParty::Requester]).await?;
        }
        // Repeated, because the first answer was lost.
        Some(WorkerNote::Question(text)) if job.talk.question.as_ref() == Some(text) => {}
        Some(WorkerNote::Question(text)) => {
            // With more, a worker could put the deadline of its failure off for ever.
            if job.talk.question.is_some() {
                let message =
                    "question is refused: a job has one question, and this one has had it";
                return Err(Error::invalid_field("question", message));
            }
            move_job(txn, &mut job, JobEvent::Ask).await?;
            job_updates::store_question(&txn.tx, job.id, text).await?;
            job.talk.question = Some(text.clone());
            job.lease_until = None;
            let draft = UpdateDraft::by_worker(&job, JobUpdateKind::Question, Some(text));
            record_update(txn, &job, draft, &[NotifiedParty::Requester]).await?;
        }
    }
    renew_lease(txn, &mut job).await?;
    Ok(job)
}

async fn renew_lease(txn: &WriteTxn<'_>, job: &mut JobRecord) -> Result<()> {
    if job.lease_until.is_some() {
        let lease_until = txn.now().saturating_add(chorus_wire::limits::JOB_LEASE);
        job_board::renew_lease(&txn.tx, job.id, lease_until).await?;
        job.lease_until = Some(lease_until);
    }
    Ok(())
}

/// `POST /jobs/{id}/answer`: the requester answers the worker's question, and the worker gets the job again with both.
pub async fn answer_question(
    principal: &Principal,
    hub: &HubContext,
    job_id: &str,
    answer: &str,
) -> Result<wire::Job> {
    let agent_id = principal.require_agent()?.id;
    let job_id = job_id.to_owned();
    let answer = answer.to_owned();
    let (job, held_id) = hub
        .store()
        .write_repeatable(async move |txn| {
            let mut job = find_own_job(txn, agent_id, &job_id).await?;
            if job.requester != agent_id {
                return Err(Error::new(
                    ErrorCode::Forbidden,
                    "only the agent that asked for the job answers a question about it",
                ));
            }
            if job.is_overdue(txn.expiry_clock()) {
                return Err(Error::new(ErrorCode::JobClosed, "the deadline has passed"));
            }
            move_job(txn, &mut job, JobEvent::Answer).await?;
            let body = add_answer(&job, &answer)?;
            let due_at = txn.now().saturating_add(limits::OUTBOX_LEASE);
            job_updates::store_answer(&txn.tx, job.id, &answer, &body, due_at).await?;
            job.body = body;
            job.talk.answer = Some(answer.clone());
            let draft = UpdateDraft::by_requester(&job, JobUpdateKind::Answer, Some(&answer));
            record_update(txn, &job, draft, &[NotifiedParty::Worker]).await?;
            if job.terms.board {
                job.lease_until = Some(txn.now());
                renew_lease(txn, &mut job).await?;
            }
            if job.endpoint.is_none() {
                move_job(txn, &mut job, JobEvent::Dispatch).await?;
                dispatch::append_job_entry(txn, &job);
            }
            let held_id = (job.state == JobState::Held).then_some(job.id.0);
            Ok((status::describe_job(&job, false), held_id))
        })
        .await?;
    if let Some(held_id) = held_id {
        dispatch::spawn_dispatch(hub, JobId(held_id));
    }
    Ok(job)
}

/// What the worker gets with the answer.
fn add_answer(job: &JobRecord, answer: &str) -> Result<String> {
    let mut body: DispatchedJob = serde_json::from_str(&job.body).map_err(Error::internal)?;
    body.question = job.talk.question.clone();
    body.answer = Some(answer.to_owned());
    serde_json::to_string(&body).map_err(Error::internal)
}

/// A job of which the agent is the requester or the worker. Other agents do not learn that it exists.
pub(super) async fn find_own_job(
    txn: &WriteTxn<'_>,
    agent_id: AgentId,
    job_id: &str,
) -> Result<JobRecord> {
    jobs::find_job_by_job_id(&txn.tx, job_id)
        .await?
        .filter(|job| job.worker == agent_id || job.requester == agent_id)
        .ok_or_else(|| ErrorCode::NotFound.into())
}
