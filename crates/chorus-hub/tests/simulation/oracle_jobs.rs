//! Every job is requested once and ends once; a job on the board has one holder at a time, and the one that did it is paid.

use crate::history::History;
use crate::operation::{Acknowledgement, ClientRequest, Operation, OperationState};
use crate::oracle::{agent_row_id, query_number};
use crate::oracle_messages::check_count;
use rusqlite::Connection;
use std::collections::HashSet;

pub fn check_jobs(connection: &Connection, history: &History, violations: &mut Vec<String>) {
    for operation in &history.operations {
        match &operation.request {
            ClientRequest::RequestJob { job_id, .. } | ClientRequest::OfferJob { job_id, .. } => {
                let sql = format!("select count(*) from jobs where job_id = '{job_id}'");
                let count = query_number(connection, &sql);
                check_count(operation, count as usize, violations);
                if count == 1 {
                    check_end(connection, history, job_id, violations);
                    check_holders(connection, job_id, violations);
                }
                if let ClientRequest::RequestJob {
                    has_callback: true, ..
                } = &operation.request
                    && count == 1
                {
                    check_callback(history, job_id, violations);
                }
            }
            ClientRequest::ClaimJob { claimer, job_id } => {
                let count = count_updates(connection, job_id, "claimed", *claimer);
                check_count(operation, count, violations);
            }
            ClientRequest::DeclineJob { worker, job_id } => {
                check_decline(connection, operation, *worker, job_id, violations);
            }
            ClientRequest::Send { .. }
            | ClientRequest::Pay { .. }
            | ClientRequest::ReportJob { .. }
            | ClientRequest::CancelJob { .. }
            | ClientRequest::JudgeJob { .. }
            | ClientRequest::PostChannel { .. } => {}
        }
    }
}

fn count_updates(connection: &Connection, job_id: &str, kind: &str, agent: usize) -> usize {
    let agent = agent_row_id(connection, agent);
    let sql = format!(
        "select count(*) from job_updates u join jobs j on j.id = u.job
         where j.job_id = '{job_id}' and u.kind = '{kind}' and u.agent = {agent}"
    );
    query_number(connection, &sql) as usize
}

/// A job that was acknowledged to be off its worker's hands is so. It may have ended, lapsed or been delivered just before.
fn check_decline(
    connection: &Connection,
    operation: &Operation,
    worker: usize,
    job_id: &str,
    violations: &mut Vec<String>,
) {
    let declined = count_updates(connection, job_id, "declined", worker);
    let is_live = operation.acknowledgements.iter().any(|one| {
        matches!(one, Acknowledgement::Job { state } if matches!(&**state, "open" | "held" | "dispatched"))
    });
    let lapsed = count_updates(connection, job_id, "lapsed", worker);
    if declined > 1 || (is_live && declined + lapsed == 0) {
        violations.push(format!(
            "{:?} took effect {declined} times",
            operation.request
        ));
    }
}

/// The budget is held once, and goes to the worker or back; the first end stands.
fn check_end(
    connection: &Connection,
    history: &History,
    job_id: &str,
    violations: &mut Vec<String>,
) {
    let (state, budget): (String, i64) = connection
        .query_row(
            "select state, budget from jobs where job_id = ?1",
            [job_id],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let sum = |kind: &str| {
        let sql = format!(
            "select sum(amount) from postings where job_id = '{job_id}' and kind = '{kind}'"
        );
        query_number(connection, &sql)
    };
    let held = sum("hold");
    let paid = sum("pay");
    let released = sum("release");
    let is_paid = paid > 0;
    if held != budget || paid + released != budget || is_paid != (state == "done") {
        violations.push(format!(
            "{job_id} is {state}: held {held} of {budget}, paid {paid}, released {released}"
        ));
    }
    let wrong_payee = format!(
        "select count(*) from postings p join jobs j on j.job_id = p.job_id
         join principals w on w.id = j.worker where p.job_id = '{job_id}' and p.kind = 'pay' and p.payee <> w.owner"
    );
    if query_number(connection, &wrong_payee) > 0 {
        violations.push(format!("{job_id}: another than its worker was paid"));
    }
    check_acknowledged_end(history, job_id, &state, violations);
}

/// The end that a client was told is the end that stands.
fn check_acknowledged_end(
    history: &History,
    job_id: &str,
    state: &str,
    violations: &mut Vec<String>,
) {
    let mut may_be_rejected = false;
    for operation in &history.operations {
        let request = &operation.request;
        let is_rejection = matches!(
            request,
            ClientRequest::JudgeJob {
                approves: false,
                ..
            }
        );
        may_be_rejected |= is_rejection && request.job_id() == Some(job_id);
    }
    for operation in &history.operations {
        let is_about = operation.request.job_id() == Some(job_id);
        if !is_about || operation.state != OperationState::Acknowledged {
            continue;
        }
        let stands = match &operation.request {
            ClientRequest::ReportJob { .. } => {
                state == "done" || (may_be_rejected && state == "failed")
            }
            ClientRequest::CancelJob { .. } => state == "cancelled",
            ClientRequest::JudgeJob { approves: true, .. } => state == "done",
            ClientRequest::JudgeJob {
                approves: false, ..
            } => state == "failed",
            ClientRequest::Send { .. }
            | ClientRequest::Pay { .. }
            | ClientRequest::RequestJob { .. }
            | ClientRequest::OfferJob { .. }
            | ClientRequest::ClaimJob { .. }
            | ClientRequest::DeclineJob { .. }
            | ClientRequest::PostChannel { .. } => true,
        };
        if !stands {
            violations.push(format!(
                "{job_id} is {state}, although its end was acknowledged: {:?}",
                operation.request
            ));
        }
    }
}

/// By its timeline a job on the board is with one agent at a time, and never with an agent that has lost it.
fn check_holders(connection: &Connection, job_id: &str, violations: &mut Vec<String>) {
    let mut statement = connection
        .prepare(
            "select u.kind, u.agent, j.board from job_updates u join jobs j on j.id = u.job
             where j.job_id = ?1 order by u.n",
        )
        .unwrap();
    let mut rows = statement.query([job_id]).unwrap();
    let mut holder: Option<i64> = None;
    let mut former = HashSet::new();
    while let Some(row) = rows.next().unwrap() {
        let kind: String = row.get(0).unwrap();
        let agent: i64 = row.get(1).unwrap();
        if row.get::<_, i64>(2).unwrap() == 0 {
            return;
        }
        let is_wrong = match &*kind {
            "claimed" => holder.replace(agent).is_some() || former.contains(&agent),
            "declined" | "lapsed" => {
                former.insert(agent);
                holder.take() != Some(agent)
            }
            "delivered" => holder != Some(agent),
            _ => false,
        };
        if is_wrong {
            violations.push(format!(
                "lease: {job_id} was {kind} by {agent}, which did not have it alone"
            ));
        }
    }
    let done_by = format!(
        "select max(worker) from jobs where job_id = '{job_id}' and board = 1 and state = 'done'"
    );
    let done_by = query_number(connection, &done_by);
    if done_by != 0 && holder != Some(done_by) {
        violations.push(format!(
            "lease: {job_id} was done by {done_by}, and {holder:?} had it"
        ));
    }
}

fn check_callback(history: &History, job_id: &str, violations: &mut Vec<String>) {
    let path = format!("/callback/{job_id}");
    let network = history.environment.network.record.lock().unwrap();
    let is_told = network
        .arrivals
        .iter()
        .any(|arrival| arrival.path == path && arrival.accepted);
    if !is_told {
        violations.push(format!("{job_id} ended, and its callback was not posted"));
    }
}
