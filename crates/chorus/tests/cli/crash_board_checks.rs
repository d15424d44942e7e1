//! What must be true of a board, its ledger and its scores after hubs were killed.

use crate::actors::TIMEOUT;
use crate::crash_board::{BoardRecord, JobFate, send_marker};
use chorus_client::HubClient;
use chorus_client::http::ApiCall;
use chorus_wire::credits::Credits;
use chorus_wire::cursor::Cursor;
use chorus_wire::market::job::{Job, JobUpdateKind};
use chorus_wire::market::transfer::EconomyReport;
use std::collections::BTreeMap;

const GRANT: i64 = 100_000;
const BUDGET: i64 = 15;
const PRICE: i64 = 10;

/// Checks every job, every account and every score against what the clients know.
pub async fn check_end(hirers: &[HubClient], workers: &[HubClient], record: &BoardRecord) {
    let mut paid_by = vec![0; hirers.len()];
    let mut paid_to = vec![0; workers.len()];
    let mut failures = vec![0; workers.len()];
    for (job_id, fate) in &record.fates {
        let (hirer, job) = find_job(hirers, job_id).await;
        let claims = &record.claims[job_id];
        check_job(&job, *fate, claims);
        check_postings(&hirers[hirer], &job, *fate).await;
        let worker = *claims.last().unwrap();
        if fate.is_paid() {
            paid_by[hirer] += PRICE;
            paid_to[worker] += PRICE;
        }
        failures[worker] += u64::from(*fate == JobFate::Fails);
    }
    check_results(hirers, workers, record).await;
    for (number, hirer) in hirers.iter().enumerate() {
        check_account(hirer, &format!("hirer{number}@chorus"), -paid_by[number]).await;
    }
    for (number, worker) in workers.iter().enumerate() {
        let name = format!("worker{number}@chorus");
        check_account(worker, &name, paid_to[number]).await;
        // A score moves once per job, and neither a decline nor a rejection moves it.
        let stats = worker.fetch_reputation(&name).await.unwrap().stats;
        assert_eq!(stats.successes, (paid_to[number] / PRICE) as u64, "{name}");
        assert_eq!(stats.failures, failures[number], "{name}");
        assert_eq!(stats.earned, Credits::from_hundredths(paid_to[number]));
    }
    check_economy(hirers, workers, record, paid_to.iter().sum()).await;
}

async fn find_job(hirers: &[HubClient], job_id: &str) -> (usize, Job) {
    for (number, hirer) in hirers.iter().enumerate() {
        if let Ok(job) = hirer.fetch_job(job_id).await {
            return (number, job);
        }
    }
    panic!("{job_id} was acknowledged, and is not there");
}

/// The job has the end of its fate, and its timeline the claims that were acknowledged: one holder after the other.
fn check_job(job: &Job, fate: JobFate, claims: &[usize]) {
    let end = match fate {
        JobFate::Fails | JobFate::Rejected => "failed",
        JobFate::Succeeds
        | JobFate::DeclinedFirst
        | JobFate::Questioned
        | JobFate::Approved
        | JobFate::ApprovedByTime => "done",
    };
    assert_eq!(job.state, end, "{job:?}");
    let name = |worker: &usize| format!("worker{worker}@chorus");
    assert_eq!(job.agent_id, claims.last().map(name), "{job:?}");
    let timeline = job.timeline.as_ref().unwrap();
    let mut holder = None;
    let mut stored_claims = Vec::new();
    for update in timeline {
        match update.kind {
            JobUpdateKind::Claimed => {
                assert_eq!(holder, None, "it was claimed while another had it: {job:?}");
                holder = update.agent_id.clone();
                stored_claims.extend(update.agent_id.clone());
            }
            JobUpdateKind::Declined => assert_eq!(holder.take(), update.agent_id),
            JobUpdateKind::Progress | JobUpdateKind::Question | JobUpdateKind::Delivered => {
                assert_eq!(holder, update.agent_id, "{job:?}");
            }
            JobUpdateKind::Answer | JobUpdateKind::Rejected => {}
            JobUpdateKind::Refused | JobUpdateKind::Unreachable | JobUpdateKind::Lapsed => {
                panic!("nothing of this happened: {job:?}");
            }
        }
    }
    let acknowledged: Vec<String> = claims.iter().map(name).collect();
    assert_eq!(stored_claims, acknowledged, "{job:?}");
    let count = |kind: JobUpdateKind| timeline.iter().filter(|update| update.kind == kind).count();
    let is_judged = job.approve_within_ms.is_some();
    assert_eq!(count(JobUpdateKind::Delivered), usize::from(is_judged));
    let is_rejected = fate == JobFate::Rejected;
    assert_eq!(count(JobUpdateKind::Rejected), usize::from(is_rejected));
}

/// The budget was held once, and paid or returned once.
async fn check_postings(hirer: &HubClient, job: &Job, fate: JobFate) {
    let audit = hirer.fetch_audit(None, Some(&job.job_id), 100).await;
    let mut postings: Vec<(String, i64)> = audit
        .unwrap()
        .postings
        .into_iter()
        .map(|posting| (posting.kind, posting.amount.to_hundredths()))
        .collect();
    postings.sort();
    let expected = if fate.is_paid() {
        vec![
            ("hold", BUDGET),
            ("pay", PRICE),
            ("release", BUDGET - PRICE),
        ]
    } else {
        vec![("hold", BUDGET), ("release", BUDGET)]
    };
    let expected: Vec<(String, i64)> = expected
        .into_iter()
        .map(|(kind, amount)| (kind.to_owned(), amount))
        .collect();
    assert_eq!(postings, expected, "{job:?}");
}

/// The inbox of each hirer has one result for each of its jobs, also when it is read from its start.
async fn check_results(hirers: &[HubClient], workers: &[HubClient], record: &BoardRecord) {
    let mut results = BTreeMap::<String, usize>::new();
    for (number, hirer) in hirers.iter().enumerate() {
        send_marker(&workers[0], &format!("hirer{number}@chorus")).await;
        let mut inbox = hirer.open_inbox(Some(Cursor::START)).await;
        loop {
            let event = tokio::time::timeout(TIMEOUT, inbox.next()).await;
            let event = event.expect("the inbox hangs").unwrap();
            if event.name == "message" {
                break;
            }
            if event.name == "job_result" {
                let job: Job = serde_json::from_str(&event.data).unwrap();
                *results.entry(job.job_id).or_default() += 1;
            }
        }
    }
    let expected: BTreeMap<String, usize> = record.fates.keys().map(|id| (id.clone(), 1)).collect();
    assert_eq!(results, expected, "every acknowledged job ended once");
}

async fn check_account(client: &HubClient, owner: &str, change: i64) {
    let account = client.fetch_account(owner).await.unwrap();
    assert_eq!(account.held, Credits::ZERO, "{owner}");
    let expected = Credits::from_hundredths(GRANT + change);
    assert_eq!(account.balance, expected, "{owner}");
}

async fn check_economy(
    hirers: &[HubClient],
    workers: &[HubClient],
    record: &BoardRecord,
    volume: i64,
) {
    let answer = hirers[0].send_call(ApiCall::get("/economy")).await.unwrap();
    let economy: EconomyReport = serde_json::from_slice(&answer.body).unwrap();
    let agents = (hirers.len() + workers.len()) as i64;
    assert_eq!(economy.issued, Credits::from_hundredths(agents * GRANT));
    assert_eq!(economy.held, Credits::ZERO);
    assert_eq!(economy.volume, Credits::from_hundredths(volume));
    let failed = record.fates.values().filter(|fate| !fate.is_paid()).count() as u64;
    let total = record.fates.len() as u64;
    assert_eq!(economy.jobs["FAILURE"], failed);
    assert_eq!(economy.jobs["SUCCESS"], total - failed);
    assert_eq!(economy.jobs.values().sum::<u64>(), total);
}
