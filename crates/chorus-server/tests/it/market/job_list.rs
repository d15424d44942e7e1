//! `GET /jobs`: a caller's own jobs, page by page, and no jobs of other agents.

use crate::support::actors::market::{
    assert_market_refused, job_request, register_requester, register_worker, request_job,
    success_result,
};
use crate::support::actors::{Agent, Answer};
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
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        request_job(&boss, &job_request("job-1")).await;
        let stranger = hub.agent("mallory").await;
        for id in ["job-1", "job-2"] {
            assert_market_refused(
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
        // Invariant 6
        const JOBS: usize = 48;
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        let large = json!({"status": "SUCCESS", "output_data": {"entities": ["x".repeat(50_000)]}, "execution_cost": 0.10});
        for number in 0..JOBS {
            let id = format!("job-{number}");
            request_job(&boss, &job_request(&id)).await;
            let answer = worker.post(&format!("/jobs/{id}/result"), &large).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        let (mut all, mut query) = (Vec::new(), String::new());
        loop {
            let (bytes, names) = page(&boss, &query).await;
            assert!(bytes < limits::HISTORY_PAGE_BYTES + 100_000, "{bytes}");
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

story!(
    my_jobs_are_listed_by_part_and_status_newest_first,
    |hub| async {
        let (boss, worker) = (
            register_requester(&hub).await,
            register_worker(&hub, "worker-1").await,
        );
        for id in ["j1", "j2", "j3"] {
            request_job(&boss, &job_request(id)).await;
        }
        assert_eq!(
            worker
                .post("/jobs/j1/result", &success_result(0.10))
                .await
                .status,
            200
        );
        assert_eq!(
            Answer::of(boss.request("POST", "/jobs/j2/cancel"))
                .await
                .status,
            200
        );
        let ids = async |of: &Agent, query: &str| {
            let answer = of.get(&format!("/jobs{query}")).await.json();
            let jobs = answer["jobs"].as_array().unwrap().clone();
            jobs.iter()
                .map(|job| job["job_id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        for (query, found) in [
            ("", "j3 j2 j1"),
            ("?role=orchestrator", "j3 j2 j1"),
            ("?role=worker", ""),
            ("?status=PENDING", "j3"),
            ("?status=SUCCESS", "j1"),
            ("?status=FAILURE", "j2"),
            ("?status=cancelled", "j2"),
            ("?limit=1", "j3"),
            ("?limit=1&before=j3", "j2"),
        ] {
            assert_eq!(ids(&boss, query).await, found, "{query}");
        }
        assert_eq!(ids(&worker, "?role=worker&status=PENDING").await, "j3");
        for bad in ["?role=boss", "?status=pending", "?limit=0"] {
            assert_market_refused(
                &boss.get(&format!("/jobs{bad}")).await,
                400,
                "ERR_VALIDATION",
            );
        }
        assert_market_refused(&boss.get("/jobs?before=j9").await, 404, "ERR_NOT_FOUND");
        let economy = hub.anonymous().get("/economy").await.json();
        assert_eq!(
            economy["jobs"],
            json!({"PENDING": 1, "SUCCESS": 1, "FAILURE": 1})
        );
        assert_eq!(economy["volume"], json!(0.1));
    }
);

story!(a_job_of_others_is_no_place_to_go_on_from, |hub| async {
    // that it exists is already news
    let (boss, worker, stranger) = (
        register_requester(&hub).await,
        register_worker(&hub, "worker-1").await,
        hub.agent("stranger").await,
    );
    request_job(&boss, &job_request("job-1")).await;
    for party in [&boss, &worker] {
        assert_eq!(
            party.get("/jobs?before=job-1").await.json(),
            json!({"jobs": []})
        );
    }
    let (known, unknown) = (
        stranger.get("/jobs?before=job-1").await,
        stranger.get("/jobs?before=job-2").await,
    );
    assert_eq!((known.status, known.text), (unknown.status, unknown.text));
});

story!(
    jobs_the_board_and_postings_lead_to_their_next_page,
    |hub| async {
        //
        let boss = register_requester(&hub).await;
        let worker = register_worker(&hub, "worker-1").await;
        for number in 0..5 {
            let mut job = job_request(&format!("job-{number}"));
            job["board"] = json!(true);
            request_job(&boss, &job).await;
        }
        let newest_first = ["job-4", "job-3", "job-2", "job-1", "job-0"];
        let oldest_first = ["job-0", "job-1", "job-2", "job-3", "job-4"];
        for (reader, list, rows, expected) in [
            (&boss, "/jobs", "jobs", newest_first),
            (&worker, "/board", "jobs", oldest_first),
            (&boss, "/audit", "postings", newest_first),
        ] {
            let mut found = Vec::new();
            let mut query = "?limit=2".to_owned();
            while !query.is_empty() {
                let answer = reader.get(&format!("{list}{query}")).await;
                assert_eq!(answer.status, 200, "{answer:?}");
                let page = answer.json();
                let ids = page[rows].as_array().unwrap().iter();
                found.extend(ids.filter_map(|row| row["job_id"].as_str().map(str::to_owned)));
                let link = answer.header("link").to_owned();
                assert_eq!(
                    link.is_empty(),
                    page[rows].as_array().unwrap().len() < 2,
                    "{link}"
                );
                query = link.split(['<', '>']).nth(1).unwrap_or_default().to_owned();
                assert!(query.is_empty() || query.contains("limit=2"), "{link}");
            }
            assert_eq!(found, expected, "{list}");
        }
    }
);
