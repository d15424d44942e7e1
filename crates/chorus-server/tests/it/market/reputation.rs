//! Reputation: how jobs change a worker's score (JOB-22…26, R-63).

use super::skills::{found, refused, worker};
use crate::support::actors::Agent;
use crate::support::hub::Hub;
use serde_json::{Value, json};

async fn standing(hub: &Hub, id: &str) -> Value {
    hub.anonymous()
        .get(&format!("/reputation/{id}"))
        .await
        .json()
}

async fn score(hub: &Hub, id: &str) -> f64 {
    standing(hub, id).await["score"].as_f64().expect("a score")
}

/// One job from `hirer` to `worker`, brought to its end.
async fn works(hirer: &Agent, worker: &Agent, success: bool) {
    let job = json!({"agent_id": worker.id, "skill_name": "adding", "budget": 0.10});
    let asked = hirer.post("/jobs", &job).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let path = format!("/jobs/{}/result", asked.json()["job_id"].as_str().unwrap());
    let result = if success {
        json!({"status": "SUCCESS", "output_data": 1})
    } else {
        json!({"status": "FAILURE"})
    };
    let told = worker.post(&path, &result).await;
    assert_eq!(told.status, 200, "{told:?}");
    // Failure 23: once is once.
    refused(
        &worker
            .post(
                &path,
                &json!({"status": "FAILURE", "error_message": "later"}),
            )
            .await,
        409,
        "ERR_JOB_CLOSED",
    );
}

story!(
    a_newcomer_is_neutral_and_nothing_it_sends_changes_that,
    |hub| async {
        // JOB-22, failures 6 and 23
        let ada = worker(&hub, "ada-1", "adding", 0.10).await;
        let fresh = hub.anonymous().get("/reputation/ada-1").await;
        let neutral = concat!(
            r#"{"agent_id":"ada-1","score":50.0,"stats":{"total":0,"successes":0,"failures":0,"distinct_hirers":0,"earned":0.00,"#,
            r#""last_30_days":{"successes":0,"failures":0,"distinct_hirers":0,"earned":0.00}},"history":[]}"#
        );
        assert_eq!((fresh.status, fresh.text.as_str()), (200, neutral));
        for field in ["reputation_score", "reputation", "score"] {
            let mut body = json!({"agent_id": "ada-1", "agent_name": "Ada"});
            body[field] = json!(99);
            refused(&ada.post("/register", &body).await, 400, "ERR_VALIDATION");
        }
        refused(
            &ada.post("/reputation/ada-1", &json!({"score": 99})).await,
            405,
            "ERR_METHOD_NOT_ALLOWED",
        );
        hub.anonymous()
            .get("/reputation/ada-1?contractor_reputation=100&score=99")
            .await;
        assert_eq!(hub.anonymous().get("/reputation/ada-1").await.text, neutral);
        assert_eq!(hub.anonymous().get("/reputation/absent").await.status, 404);
        refused(
            &hub.anonymous().get("/reputation/~").await,
            404,
            "ERR_AGENT_NOT_FOUND",
        );
        assert_eq!(hub.anonymous().get("/reputation").await.status, 404);
    }
);

story!(work_moves_a_score_by_the_printed_formula, |hub| async {
    // JOB-23…26, R-63
    let ada = worker(&hub, "ada-1", "adding", 0.10).await;
    let ben = worker(&hub, "ben-1", "adding", 0.10).await;
    let boss = hub.agent("boss").await;
    works(&boss, &ada, true).await;
    assert_eq!(score(&hub, "ada-1").await, 51.0, "50 + 2 x 50 / 100");
    works(&boss, &ada, true).await;
    assert_eq!(score(&hub, "ada-1").await, 52.0);
    works(&ada, &ben, true).await;
    assert_eq!(
        score(&hub, "ben-1").await,
        50.0 + 2.0 * 52.0 / 100.0,
        "a better hirer gives more"
    );
    works(&boss, &ada, false).await;
    assert_eq!(score(&hub, "ada-1").await, 47.5, "52 - 3 x 1.5");
    assert_eq!(
        score(&hub, "boss@chorus").await,
        50.0,
        "hiring earns nothing"
    );
    let ada = standing(&hub, "ada-1").await;
    let stats = &ada["stats"];
    assert_eq!(
        (&stats["total"], &stats["successes"], &stats["failures"]),
        (&json!(3), &json!(2), &json!(1))
    );
    let scores: Vec<&Value> = ada["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["score_after"])
        .collect();
    assert_eq!(scores, [47.5, 52.0, 51.0], "newest first");
});

story!(
    a_score_ranks_and_survives_and_is_not_reset_by_registering_again,
    |hub| async {
        // JOB-13, R-11, failure 23
        let good = worker(&hub, "good", "adding", 0.10).await;
        let bad = worker(&hub, "bad", "adding", 0.05).await;
        let boss = hub.agent("boss").await;
        let ranked = async |hub: &Hub, query: &str| {
            let found = found(hub, query).await["agents"].clone();
            found
                .as_array()
                .unwrap()
                .iter()
                .map(|row| row["agent_id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            ranked(&hub, "skill=adding").await,
            ["bad", "good"],
            "equal scores: the cheaper one"
        );
        works(&boss, &good, true).await;
        works(&boss, &bad, false).await;
        assert_eq!(ranked(&hub, "skill=adding").await, ["good", "bad"]);
        assert_eq!(
            ranked(&hub, "skill=adding&min_reputation=46").await,
            ["good"]
        );
        assert_eq!(
            ranked(&hub, "skill=adding&min_reputation=45.5").await,
            ["good", "bad"]
        );
        assert_eq!(ranked(&hub, "min_reputation=51").await, ["good"]);
        let again = json!({"agent_id": "bad", "agent_name": "Better", "skills": [{"skill_name": "adding", "cost_per_call": 0.01}]});
        let again = bad.post("/register", &again).await;
        assert_eq!(
            (again.status, &again.json()["reputation_score"]),
            (200, &json!(45.5)),
            "{again:?}"
        );
        assert_eq!(
            ranked(&hub, "skill=adding").await,
            ["good", "bad"],
            "a new registration is no new start"
        );
        hub.restart().await;
        assert_eq!(
            (score(&hub, "good").await, score(&hub, "bad").await),
            (51.0, 45.5)
        );
        assert_eq!(ranked(&hub, "skill=adding").await, ["good", "bad"]);
    }
);

story!(
    work_for_oneself_or_ones_own_owner_earns_nothing,
    |hub| async {
        // R-63
        let ada = worker(&hub, "ada-1", "adding", 0.10).await;
        let twin = json!({"agent_id": "ada-2", "owner_id": "owner of ada-1", "agent_name": "Twin"});
        let twin = ada.post("/register", &twin).await;
        assert_eq!(twin.status, 201, "{twin:?}");
        let twin = Agent::new(&ada, "ada-2", twin.json()["api_key"].as_str().unwrap());
        for (hirer, success) in [(&ada, true), (&twin, true), (&twin, false)] {
            works(hirer, &ada, success).await;
        }
        let ada = standing(&hub, "ada-1").await;
        assert_eq!(
            (&ada["score"], &ada["stats"]["total"], &ada["history"]),
            (&json!(50.0), &json!(0), &json!([]))
        );
    }
);

story!(
    an_owner_that_changes_while_a_job_is_done_does_not_make_it_work_for_others,
    |hub| async {
        // R-63: what was asked for at home stays at home, whatever its agents call themselves when it is done
        let ada = worker(&hub, "ada-1", "adding", 0.10).await;
        for (id, result) in [("twin-1", "SUCCESS"), ("twin-2", "FAILURE")] {
            let twin = json!({"agent_id": id, "owner_id": "owner of ada-1", "agent_name": "Twin"});
            let twin = ada.post("/register", &twin).await.json();
            let twin = Agent::new(&ada, id, twin["api_key"].as_str().unwrap());
            let job =
                json!({"job_id": id, "agent_id": "ada-1", "skill_name": "adding", "budget": 0.10});
            assert_eq!(twin.post("/jobs", &job).await.status, 202);
            let moved = twin
                .post(
                    "/register",
                    &json!({"agent_id": id, "owner_id": format!("new owner of {id}")}),
                )
                .await;
            assert_eq!(moved.status, 200, "{moved:?}");
            let told = ada
                .post(&format!("/jobs/{id}/result"), &json!({"status": result}))
                .await;
            assert_eq!(told.status, 200, "{told:?}");
            assert_eq!(
                (
                    score(&hub, "ada-1").await,
                    &standing(&hub, "ada-1").await["history"]
                ),
                (50.0, &json!([])),
                "{result}"
            );
        }
    }
);

story!(a_score_never_leaves_its_bounds, |hub| async {
    // JOB-25
    let ada = worker(&hub, "ada-1", "adding", 0.10).await;
    let boss = hub.agent("boss").await;
    for _ in 0..12 {
        works(&boss, &ada, false).await;
    }
    assert_eq!(score(&hub, "ada-1").await, 0.0);
    works(&boss, &ada, true).await;
    assert_eq!(score(&hub, "ada-1").await, 1.0, "the way up starts at once");
});
