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
use std::time::Duration;

const STEPS: usize = 220;
const BUDGET_CENTS: i64 = 15;

struct Market<'a> {
    hub: &'a Hub,
    boss: Agent,
    workers: Vec<Agent>,
    jobs: Vec<String>,
    chance: SeededRandom,
}

impl Market<'_> {
    /// Any answer is fine here: the sums below say whether it was right.
    async fn take_step(&mut self) {
        let step = self.chance.below(16);
        let worker = &self.workers[self.chance.below(self.workers.len())];
        let job_id = match self.jobs.len() {
            0 => "none".to_owned(),
            known => self.jobs[known - 1 - self.chance.below(known.min(8))].clone(),
        };
        let result_path = format!("/jobs/{job_id}/result");
        let act = |by: &Agent, name: &str| {
            Answer::of(by.request("POST", &format!("/jobs/{job_id}/{name}")))
        };
        match step {
            0..=3 => {
                let id = format!("job-{}", self.jobs.len());
                let mut job = job_request(&id);
                if step >= 1 {
                    job["board"] = json!(true);
                }
                if step == 2 {
                    job["approve_within_ms"] = json!(400_000);
                }
                if self.boss.post("/jobs", &job).await.status == 202 {
                    self.jobs.push(id);
                }
            }
            4..=6 => drop(act(worker, "claim").await),
            7 | 8 => {
                let cost = [0.0, 0.05, 0.1, 0.2][self.chance.below(4)];
                for worker in &self.workers {
                    worker.post(&result_path, &success_result(cost)).await;
                }
            }
            9 => {
                let code = ["SKILL_MISMATCH", "EXECUTION_ERROR"][self.chance.below(2)];
                let report = json!({"status": "FAILURE", "error_code": code});
                for worker in &self.workers {
                    worker.post(&result_path, &report).await;
                }
            }
            10 => {
                let note = json!({"status": "PENDING", "question": "Which?"});
                for worker in &self.workers {
                    worker.post(&result_path, &note).await;
                }
            }
            11 => {
                let answer = json!({"answer": "This."});
                let path = format!("/jobs/{job_id}/answer");
                self.boss.post(&path, &answer).await;
            }
            12 => drop(act(&self.boss, "approve").await),
            13 => drop(act(&self.boss, "reject").await),
            14 => drop(act(&self.boss, "cancel").await),
            _ => {
                self.hub
                    .advance(Duration::from_secs(60 * self.chance.below(6) as u64));
                self.hub.maintain().await;
            }
        }
    }

    /// What the requester and the workers have follows from the jobs alone.
    async fn check_sums(&self) {
        let cents = |value: &Value| (value.as_f64().unwrap_or(0.0) * 100.0).round() as i64;
        let mut paid = 0;
        let mut held = 0;
        for id in &self.jobs {
            let job = self.boss.get(&format!("/jobs/{id}")).await.json();
            match job["status"].as_str() {
                Some("SUCCESS") => paid += cents(&job["execution_cost"]),
                Some("PENDING") => held += BUDGET_CENTS,
                status => assert_eq!(status, Some("FAILURE"), "{job}"),
            }
        }
        let (balance, held_now) = balance_and_held(self.hub, &self.boss).await;
        let balance = (balance * 100.0).round() as i64;
        assert_eq!(balance, 10_000 - paid - held, "{:?}", self.jobs);
        assert_eq!((held_now * 100.0).round() as i64, held);
        let mut earned = 0;
        for worker in &self.workers {
            let (balance, held) = balance_and_held(self.hub, worker).await;
            earned += (balance * 100.0).round() as i64 - 10_000;
            assert_eq!(held, 0.0);
        }
        assert_eq!(earned, paid);
        assert_credits_conserved(self.hub).await;
    }
}

story!(
    no_sequence_of_acts_on_jobs_makes_or_loses_credits,
    |hub| async {
        let boss = register_requester(&hub).await;
        let mut workers = Vec::new();
        for (id, cost) in [("worker-1", 0.1), ("worker-2", 0.12), ("worker-3", 0.05)] {
            workers.push(register_trader(&hub, id, skill_offer(cost), None).await);
        }
        let mut market = Market {
            hub: &hub,
            boss,
            workers,
            jobs: Vec::new(),
            chance: SeededRandom(0x51ed_270b_9f2c_4d13),
        };
        for step in 0..STEPS {
            market.take_step().await;
            if step % 20 == 19 {
                market.check_sums().await;
            }
        }
        // In the end every job has ended, and nothing is held.
        hub.advance(Duration::from_secs(3_600));
        hub.maintain().await;
        hub.maintain().await;
        market.check_sums().await;
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
);
