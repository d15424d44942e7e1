//! No sequence of acts on jobs makes, loses or double-spends credits: direct hires and the board, declines and the next worker, questions,
//! approval, cancelling, leases and deadlines (invariant 7).

use crate::support::actors::market::{
    assert_credits_conserved, balance_and_held, job_request, register_requester, register_trader,
    skill_offer, success_result,
};
use crate::support::actors::{Agent, Answer};
use crate::support::hub::Hub;
use crate::support::seeded_random::SeededRandom;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const STEPS: usize = 400;
const BUDGET_CENTS: i64 = 15;
/// What has to happen in the run: without it the sums would say nothing about it.
const EXPECTED_ACTS: [&str; 16] = [
    "hired",
    "published",
    "claimed",
    "reported",
    "delivered",
    "declined",
    "passed on",
    "failed",
    "asked",
    "answered",
    "approved",
    "rejected",
    "cancelled",
    "lapsed",
    "approved by time",
    "expired",
];

struct Market<'a> {
    hub: &'a Hub,
    boss: Agent,
    workers: Vec<Agent>,
    jobs: Vec<String>,
    /// The jobs whose delivery the requester itself approved.
    approved_jobs: BTreeSet<String>,
    random: SeededRandom,
    /// How often each act was accepted.
    accepted: BTreeMap<&'static str, usize>,
}

impl Market<'_> {
    /// Mostly a job in this state, so that the act is possible, and sometimes any of the latest.
    async fn pick_job(&mut self, state: &str) -> String {
        let found = self.boss.get(&format!("/jobs?status={state}")).await.json();
        let in_state = found["jobs"].as_array().unwrap();
        match (self.random.below(4), self.jobs.len(), in_state.len()) {
            (_, 0, _) => "none".to_owned(),
            (0, known, _) | (_, known, 0) => {
                self.jobs[known - 1 - self.random.below(known.min(8))].clone()
            }
            (_, _, count) => in_state[self.random.below(count)]["job_id"]
                .as_str()
                .unwrap()
                .to_owned(),
        }
    }

    fn count(&mut self, name: &'static str, is_accepted: bool) {
        *self.accepted.entry(name).or_default() += usize::from(is_accepted);
    }

    fn accepted_count(&self, name: &str) -> usize {
        self.accepted.get(name).copied().unwrap_or(0)
    }

    async fn request(&mut self, terms: Value) {
        let id = format!("job-{}", self.jobs.len());
        let mut job = job_request(&id);
        let fields = job.as_object_mut().unwrap();
        fields.extend(terms.as_object().unwrap().clone());
        let is_accepted = self.boss.post("/jobs", &job).await.status == 202;
        let is_direct = job["board"].is_null();
        self.count(if is_direct { "hired" } else { "published" }, is_accepted);
        if is_accepted {
            self.jobs.push(id);
        }
    }

    async fn claim(&mut self) {
        let job_id = self.pick_job("open").await;
        let worker = &self.workers[self.random.below(self.workers.len())];
        let claimed = Answer::of(worker.request("POST", &format!("/jobs/{job_id}/claim"))).await;
        self.count("claimed", claimed.status == 200);
    }

    /// Every worker reports: only the one that has the job may.
    async fn report(&mut self, name: &'static str, report: &Value) {
        let job_id = self.pick_job("dispatched").await;
        let path = format!("/jobs/{job_id}/result");
        let mut answers = Vec::new();
        for worker in &self.workers {
            answers.push((worker.id.clone(), worker.post(&path, report).await));
        }
        for (id, answer) in answers {
            let is_accepted = answer.status == 200;
            self.count(name, is_accepted);
            let job = answer.json();
            self.count("delivered", is_accepted && job["state"] == "delivered");
            let has_other_worker = job["agent_id"].as_str().is_some_and(|other| other != id);
            self.count("passed on", is_accepted && has_other_worker);
        }
    }

    async fn judge(&mut self, name: &'static str, path: &str, state: &str, body: &Value) {
        let job_id = self.pick_job(state).await;
        let answer = self
            .boss
            .post(&format!("/jobs/{job_id}/{path}"), body)
            .await;
        let is_accepted = answer.status == 200;
        self.count(name, is_accepted);
        if name == "approved" && is_accepted {
            self.approved_jobs.insert(job_id);
        }
    }

    /// Counts what the hub did by itself when a time was over.
    async fn count_endings_by_time(&mut self) {
        for id in self.jobs.clone() {
            let job = self.boss.get(&format!("/jobs/{id}")).await.json();
            let has_update = |kind: &str| {
                let updates = job["timeline"].as_array().unwrap();
                updates.iter().any(|update| update["kind"] == kind)
            };
            let was_delivered = job["state"] == "done" && has_update("delivered");
            self.count("lapsed", has_update("lapsed"));
            self.count("expired", job["state"] == "expired");
            let by_requester = self.approved_jobs.contains(&id);
            self.count("approved by time", was_delivered && !by_requester);
        }
    }

    /// Any answer is fine here: the sums below say whether it was right.
    async fn take_step(&mut self) {
        match self.random.below(20) {
            0 => self.request(json!({})).await,
            1 => self.request(json!({"board": true})).await,
            2 | 3 => {
                let terms = json!({"board": true, "approve_within_ms": 400_000});
                self.request(terms).await;
            }
            4..=6 => self.claim().await,
            7..=10 => {
                let cost = [0.0, 0.05, 0.1, 0.2][self.random.below(4)];
                self.report("reported", &success_result(cost)).await;
            }
            11 => {
                let decline = json!({"status": "FAILURE", "error_code": "SKILL_MISMATCH"});
                self.report("declined", &decline).await;
            }
            12 => self.report("failed", &json!({"status": "FAILURE"})).await,
            13 => {
                let question = json!({"status": "PENDING", "question": "Which?"});
                self.report("asked", &question).await;
            }
            14 | 15 => {
                let answer = json!({"answer": "This."});
                self.judge("answered", "answer", "input-required", &answer)
                    .await;
            }
            16 => {
                self.judge("approved", "approve", "delivered", &json!({}))
                    .await;
            }
            17 => {
                self.judge("rejected", "reject", "delivered", &json!({}))
                    .await;
            }
            18 => {
                self.judge("cancelled", "cancel", "open", &json!({})).await;
            }
            _ => {
                self.hub
                    .advance(Duration::from_secs(60 * self.random.below(6) as u64));
                self.hub.maintain().await;
            }
        }
    }

    /// What the requester and the workers have follows from the jobs alone.
    async fn check_sums(&self) {
        let cents = |value: &Value| (value.as_f64().unwrap_or(0.0) * 100.0).round() as i64;
        let mut paid = BTreeMap::<String, i64>::new();
        let mut held = 0;
        for id in &self.jobs {
            let job = self.boss.get(&format!("/jobs/{id}")).await.json();
            match job["status"].as_str() {
                Some("SUCCESS") => {
                    let worker = job["agent_id"].as_str().unwrap().to_owned();
                    *paid.entry(worker).or_default() += cents(&job["execution_cost"]);
                }
                Some("PENDING") => held += BUDGET_CENTS,
                status => assert_eq!(status, Some("FAILURE"), "{job}"),
            }
        }
        let (balance, held_now) = balance_and_held(self.hub, &self.boss).await;
        let balance = (balance * 100.0).round() as i64;
        let all_paid: i64 = paid.values().sum();
        assert_eq!(balance, 10_000 - all_paid - held, "{:?}", self.jobs);
        assert_eq!((held_now * 100.0).round() as i64, held);
        // Each is paid for the jobs that it did itself, also where another had them before.
        for worker in &self.workers {
            let (balance, held) = balance_and_held(self.hub, worker).await;
            let earned = (balance * 100.0).round() as i64 - 10_000;
            let expected = paid.get(&worker.id).copied().unwrap_or(0);
            assert_eq!(earned, expected, "{}: {:?}", worker.id, self.jobs);
            assert_eq!(held, 0.0);
        }
        assert_credits_conserved(self.hub).await;
    }
}

async fn check_sequence_of_acts(hub: &Hub, seed: u64) {
    let boss = register_requester(hub).await;
    let mut workers = Vec::new();
    for (id, cost) in [("worker-1", 0.1), ("worker-2", 0.12), ("worker-3", 0.05)] {
        workers.push(register_trader(hub, id, skill_offer(cost), None).await);
    }
    let mut market = Market {
        hub,
        boss,
        workers,
        jobs: Vec::new(),
        approved_jobs: BTreeSet::new(),
        random: SeededRandom(seed),
        accepted: BTreeMap::new(),
    };
    for step in 0..STEPS {
        let passed_on = market.accepted_count("passed on");
        market.take_step().await;
        // A hold that is lost while a job changes its worker does not show once the job has ended.
        if step % 20 == 19 || market.accepted_count("passed on") > passed_on {
            market.check_sums().await;
        }
    }
    // In the end every job has ended, and nothing is held.
    hub.advance(Duration::from_secs(3_600));
    hub.maintain().await;
    hub.maintain().await;
    market.check_sums().await;
    market.count_endings_by_time().await;
    for act in EXPECTED_ACTS {
        let count = market.accepted_count(act);
        assert!(count > 0, "never {act}: {:?}", market.accepted);
    }
    let economy = hub.anonymous().get("/economy").await.json();
    assert_eq!(
        (&economy["held"], &economy["jobs"]["PENDING"]),
        (&json!(0.0), &json!(0))
    );
    let total: u64 = economy["job_states"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(total, market.jobs.len() as u64, "{economy}");
}

story!(
    no_sequence_of_acts_on_jobs_makes_or_loses_credits,
    |hub| async { check_sequence_of_acts(&hub, 0x51ed_270b_9f2c_4d13).await }
);

story!(
    no_other_sequence_of_acts_on_jobs_makes_or_loses_credits,
    |hub| async { check_sequence_of_acts(&hub, 0x2c8a_91f4_0d6e_b357).await }
);
