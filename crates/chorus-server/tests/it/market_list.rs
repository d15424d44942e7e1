//! `GET /jobs`: one's own, page by page, and nothing of anybody else's.

use crate::actors::Agent;
use crate::actors::market::{boss, hired, job, refused, worker};
use chorus_wire::limits;
use serde_json::{Value, json};

async fn page(of: &Agent, query: &str) -> (usize, Vec<String>) {
    let answer = of.get(&format!("/jobs{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let body = answer.json();
    let name = |job: &Value| job["job_id"].as_str().unwrap().to_owned();
    (
        answer.text.len(),
        body["jobs"].as_array().unwrap().iter().map(name).collect(),
    )
}

story!(
    a_page_does_not_say_whether_anothers_job_is_there,
    |hub| async {
        //
        let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        hired(&boss, &job("job-1")).await;
        let stranger = hub.agent("mallory").await;
        for id in ["job-1", "job-2"] {
            refused(
                &stranger.get(&format!("/jobs?before={id}")).await,
                404,
                "ERR_NOT_FOUND",
            );
        }
        for party in [&boss, &worker] {
            assert_eq!(page(party, "?before=job-1").await.1, Vec::<String>::new());
        }
    }
);

story!(
    a_page_of_large_jobs_is_short_and_the_next_ones_go_on_after_it,
    |hub| async {
        // Law 6
        const JOBS: usize = 48;
        let (boss, worker) = (boss(&hub).await, worker(&hub, "worker-1").await);
        let large = json!({"status": "SUCCESS", "output_data": {"entities": ["x".repeat(50_000)]}, "execution_cost": 0.10});
        for number in 0..JOBS {
            let id = format!("job-{number}");
            hired(&boss, &job(&id)).await;
            let answer = worker.post(&format!("/jobs/{id}/result"), &large).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        let (mut all, mut query) = (Vec::new(), String::new());
        loop {
            let (bytes, names) = page(&boss, &query).await;
            assert!(bytes < limits::HISTORY_BYTES + 100_000, "{bytes}");
            let Some(last) = names.last() else { break };
            query = format!("?before={last}");
            all.extend(names);
        }
        let newest_first: Vec<String> = (0..JOBS)
            .rev()
            .map(|number| format!("job-{number}"))
            .collect();
        assert_eq!(all, newest_first);
    }
);
