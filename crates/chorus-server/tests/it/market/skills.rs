//! Skills: offers, search and ranking (JOB-08…15, R-12, R-66, R-67).

use crate::support::actors::{Agent, Answer, registration};
use crate::support::examples::example;
use crate::support::hub::Hub;
use serde_json::{Value, json};
use std::time::Duration;

/// Registered in the market's form with one skill.
pub async fn worker(hub: &Hub, id: &str, skill: &str, cost: f64) -> Agent {
    let body = json!({"agent_id": id, "agent_name": format!("The {id}"), "owner_id": format!("owner of {id}"),
        "skills": [{"skill_name": skill, "cost_per_call": cost}]});
    let answer = hub.anonymous().post("/register", &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    Agent::new(
        &hub.anonymous(),
        id,
        answer.json()["api_key"].as_str().expect("a key"),
    )
}

/// The sentence of an error in the jobs document's form (R-65).
#[track_caller]
pub fn refused(answer: &Answer, status: u16, code: &str) -> String {
    let body = answer.json();
    assert_eq!(
        (answer.status, body["error_code"].as_str()),
        (status, Some(code)),
        "{answer:?}"
    );
    assert_eq!(body.as_object().unwrap().len(), 2, "{answer:?}");
    body["error_message"]
        .as_str()
        .expect("a sentence")
        .to_owned()
}

pub async fn found(hub: &Hub, query: &str) -> Value {
    let answer = hub.anonymous().get(&format!("/discover?{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn names(hub: &Hub, query: &str) -> Vec<String> {
    let found = found(hub, query).await;
    let agents = found["agents"].as_array().expect("a list");
    agents
        .iter()
        .map(|agent| agent["agent_id"].as_str().unwrap().to_owned())
        .collect()
}

story!(the_printed_registration_is_found_as_printed, |hub| async {
    // JOB-08…12, lesson 14; the endpoint is public, so the hub would look its name up: a host that cannot be looked up stays as printed
    let body = example("jobs-protocol/3.1-register.json");
    let answer = hub.anonymous().post("/register", &body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert!(
        answer
            .text
            .starts_with(r#"{"status":"registered","agent_id":"uuid","reputation_score":50.0"#),
        "{answer:?}"
    );
    let answer = hub
        .anonymous()
        .get("/discover?skill=analyze_text&min_reputation=40&max_cost=0.15")
        .await;
    let agent = concat!(
        r#"{"agent_id":"uuid","agent_name":"Human-readable name","api_endpoint":"https://agent-host:port/jobs","#,
        r#""skill":{"skill_name":"analyze_text","cost_per_call":0.10,"description":"Extracts structured data from unstructured text","#,
        r#""input_schema":{"text":"string"},"output_schema":{"entities":"list"}},"reputation_score":50.0,"success_count":0,"#,
        r#""failure_count":0,"distinct_hirers":0,"earned":0.00,"status":"online","owner_id":"Owner identifier"}"#
    );
    assert_eq!(answer.text, format!(r#"{{"agents":[{agent}],"total":1}}"#));
});

story!(a_search_keeps_to_its_filters, |hub| async {
    // JOB-14, R-12
    worker(&hub, "cheap", "translate", 0.05).await;
    worker(&hub, "dear", "translate", 0.5).await;
    worker(&hub, "other", "draw", 0.05).await;
    assert_eq!(names(&hub, "skill=translate").await, ["cheap", "dear"]);
    assert_eq!(
        names(&hub, "skill=translate&max_cost=0.05").await,
        ["cheap"]
    );
    assert_eq!(names(&hub, "skill=translate&max_cost=0.04").await, [""; 0]);
    assert_eq!(
        names(&hub, "skill=translate&min_reputation=50").await,
        ["cheap", "dear"]
    );
    assert_eq!(
        names(&hub, "skill=translate&min_reputation=50.001").await,
        [""; 0]
    );
    assert_eq!(
        names(&hub, "skill=Translate").await,
        [""; 0],
        "a name is a name"
    );
    assert_eq!(
        names(&hub, "max_cost=0.05").await,
        ["cheap", "other"],
        "a skill may be left out"
    );
    assert_eq!(names(&hub, "min_reputation=0").await.len(), 3);
    let page = found(&hub, "skill=translate&limit=1").await;
    assert_eq!(
        (page["agents"].as_array().unwrap().len(), &page["total"]),
        (1, &json!(2))
    );
    for (query, named) in [
        ("skill=", "skill"),
        ("max_cost=0.001", "max_cost"),
        ("max_cost=1e1", "max_cost"),
        ("max_cost=-1", "max_cost"),
        ("max_cost=NaN", "max_cost"),
        ("min_reputation=high", "min_reputation"),
        ("skill=a&limit=0", "limit"),
    ] {
        let said = refused(
            &hub.anonymous().get(&format!("/discover?{query}")).await,
            400,
            "ERR_VALIDATION",
        );
        assert!(said.contains(named), "{query}: {said}");
    }
});

story!(
    registering_again_replaces_the_skills_and_leaving_withdraws_them,
    |hub| async {
        // R-11
        let ada = worker(&hub, "ada-1", "adding", 0.10).await;
        let body = json!({"agent_id": "ada-1", "agent_name": "Ada", "skills": [
        {"skill_name": "adding", "cost_per_call": 0.2}, {"skill_name": "dividing", "cost_per_call": 0.3}]});
        let again = ada.post("/register", &body).await;
        assert_eq!(
            (again.status, &again.json()["reputation_score"]),
            (200, &json!(50.0)),
            "{again:?}"
        );
        let ada = Agent::new(&ada, "ada-1", again.json()["api_key"].as_str().unwrap());
        assert_eq!(
            found(&hub, "skill=adding").await["agents"][0]["skill"]["cost_per_call"],
            0.2
        );
        assert_eq!(names(&hub, "skill=dividing").await, ["ada-1"]);
        let body = json!({"agent_id": "ada-1", "agent_name": "Ada", "skills": [{"skill_name": "dividing", "cost_per_call": 1}]});
        let ada = Agent::new(
            &ada,
            "ada-1",
            ada.post("/register", &body).await.json()["api_key"]
                .as_str()
                .unwrap(),
        );
        assert_eq!(
            (
                names(&hub, "skill=adding").await.len(),
                names(&hub, "skill=dividing").await.len()
            ),
            (0, 1)
        );
        ada.delete("/agents/ada-1").await.data(200);
        assert_eq!(
            found(&hub, "skill=dividing").await,
            json!({"agents": [], "total": 0})
        );
        assert_eq!(
            hub.anonymous().get("/skills").await.json(),
            json!({"skills": [], "total_agents": 0})
        );
    }
);

story!(
    a_skill_that_is_none_is_refused_and_nothing_is_registered,
    |hub| async {
        // JOB-09, R-64; bad input of the issue
        let good = json!({"skill_name": "s", "cost_per_call": 0.1});
        for (field, bad) in [
            ("cost_per_call", json!(-0.1)),
            ("cost_per_call", json!(0.001)),
            ("cost_per_call", json!("0.10")),
            ("cost_per_call", json!(null)),
            ("skill_name", json!("")),
            ("skill_name", json!("n".repeat(257))),
            ("skill_name", json!(5)),
            ("description", json!(5)),
            ("input_schema", json!("string")),
            ("input_schema", json!({"text": "strin"})),
            ("input_schema", json!({"type": "nonsense"})),
            ("input_schema", json!({"$ref": "http://127.0.0.1:9/"})),
            ("output_schema", json!({"type": "object", "properties": 5})),
            ("colour", json!("red")),
        ] {
            let mut skill = good.clone();
            skill[field] = bad;
            let body = json!({"agent_id": "w-1", "skills": [skill]});
            let said = refused(
                &hub.anonymous().post("/register", &body).await,
                400,
                "ERR_VALIDATION",
            );
            assert!(said.contains(field), "{body}: {said}");
        }
        let exponent = r#"{"agent_id":"w-1","skills":[{"skill_name":"s","cost_per_call":1e-1}]}"#;
        refused(
            &hub.anonymous().post_text("/register", exponent).await,
            400,
            "ERR_VALIDATION",
        );
        refused(
            &hub.anonymous().get("/reputation/w-1").await,
            404,
            "ERR_AGENT_NOT_FOUND",
        );
    }
);

story!(
    an_agent_of_the_other_form_offers_a_skill_without_a_new_key,
    |hub| async {
        // ours: registering again would rotate the key and end the streams it opened
        let bob = hub.agent("bob").await;
        let skill =
            json!({"description": "Adds", "cost_per_call": 0.10, "input_schema": {"a": "number"}});
        let put = |body: Value| Answer::of(bob.request("PUT", "/skills/adding").json(&body));
        let answer = put(skill.clone()).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        assert!(
            answer.text.contains(r#""cost_per_call":0.10"#),
            "{answer:?}"
        );
        let row = found(&hub, "skill=adding").await["agents"][0].clone();
        assert_eq!(
            (&row["agent_id"], &row["agent_name"], &row["api_endpoint"]),
            (&json!("bob@chorus"), &json!("bob@chorus"), &json!(null))
        );
        assert_eq!(
            (&row["owner_id"], &row["status"]),
            (&json!("bob@chorus"), &json!("online"))
        );
        assert_eq!(put(json!({"cost_per_call": 0.2})).await.status, 200);
        assert_eq!(
            found(&hub, "skill=adding").await["agents"][0]["skill"]["cost_per_call"],
            0.2
        );
        refused(
            &put(json!({"cost_per_call": -1})).await,
            400,
            "ERR_VALIDATION",
        );
        refused(
            &put(json!({"skill_name": "other", "cost_per_call": 1})).await,
            400,
            "ERR_VALIDATION",
        );
        refused(
            &put(json!({"cost_per_call": 1, "input_schema": {"a": "numbr"}})).await,
            400,
            "ERR_VALIDATION",
        );
        refused(
            &Answer::of(
                hub.anonymous()
                    .request("PUT", "/skills/adding")
                    .json(&skill),
            )
            .await,
            401,
            "ERR_UNAUTHORIZED",
        );
        refused(
            &Answer::of(hub.operator().request("PUT", "/skills/adding").json(&skill)).await,
            403,
            "ERR_FORBIDDEN",
        );
        assert_eq!(
            bob.delete("/skills/adding").await.json(),
            json!({"skill_name": "adding", "withdrawn": true})
        );
        assert_eq!(
            bob.delete("/skills/adding").await.json()["withdrawn"],
            false
        );
        assert_eq!(found(&hub, "skill=adding").await["total"], 0);
        bob.get("/agent/messages").await.data(200);
    }
);

story!(every_skill_is_listed_with_its_best_price, |hub| async {
    // lesson 14
    for (id, skill, cost) in [
        ("a", "translate", 0.3),
        ("b", "translate", 0.1),
        ("c", "draw", 2.0),
    ] {
        worker(&hub, id, skill, cost).await;
    }
    let answer = hub.anonymous().get("/skills").await;
    let rows = concat!(
        r#"{"skill_name":"draw","agents":1,"min_cost":2.00},"#,
        r#"{"skill_name":"translate","agents":2,"min_cost":0.10}"#
    );
    assert_eq!(
        answer.text,
        format!(r#"{{"skills":[{rows}],"total_agents":3}}"#)
    );
    let page = hub
        .anonymous()
        .get("/skills?after=draw&limit=5")
        .await
        .json();
    assert_eq!(page["skills"].as_array().unwrap().len(), 1);
    refused(
        &hub.anonymous().get("/skills?limit=0").await,
        400,
        "ERR_VALIDATION",
    );
    refused(
        &hub.anonymous().delete("/skills").await,
        405,
        "ERR_METHOD_NOT_ALLOWED",
    );
});

story!(
    an_endpoint_is_shown_without_what_may_be_secret,
    |hub| async {
        // R-32, R-67
        let body = json!({"agent_id": "w-1", "api_endpoint": "http://127.0.0.1:9/hook?token=not-for-strangers",
        "skills": [{"skill_name": "adding", "cost_per_call": 1}]});
        assert_eq!(hub.anonymous().post("/register", &body).await.status, 201);
        let answer = hub.anonymous().get("/discover?skill=adding").await;
        assert_eq!(
            answer.json()["agents"][0]["api_endpoint"],
            "http://127.0.0.1:9/hook"
        );
        assert!(!answer.text.contains("strangers"));
    }
);

story!(
    a_silent_agent_is_offline_and_comes_after_the_others,
    |hub| async {
        // R-66, JOB-15, JOB-29
        let quiet = worker(&hub, "quiet", "adding", 0.05).await;
        worker(&hub, "never-heard", "adding", 0.50).await;
        let status = async |name: &str| {
            let found = found(&hub, "skill=adding").await;
            let row = found["agents"]
                .as_array()
                .unwrap()
                .iter()
                .find(|row| row["agent_id"] == name)
                .cloned();
            row.unwrap()["status"].clone()
        };
        hub.advance(Duration::from_secs(600));
        assert_eq!(
            names(&hub, "skill=adding").await,
            ["quiet", "never-heard"],
            "registered is online"
        );
        let beat = quiet
            .post("/heartbeat", &json!({"agent_id": "quiet"}))
            .await;
        assert_eq!(
            (beat.status, &beat.json()["status"]),
            (200, &json!("online")),
            "{beat:?}"
        );
        hub.advance(Duration::from_secs(90));
        assert_eq!(status("quiet").await, "online");
        hub.advance(Duration::from_secs(1));
        assert_eq!(status("quiet").await, "offline");
        assert_eq!(
            names(&hub, "skill=adding").await,
            ["never-heard", "quiet"],
            "online first, whatever it costs"
        );
        assert_eq!(names(&hub, "skill=adding&limit=1").await, ["never-heard"]);
        quiet.get("/agent/messages").await.data(200);
        assert_eq!(
            status("quiet").await,
            "online",
            "any request with the key is a beat"
        );
        let inbox = quiet.inbox().await;
        hub.advance(Duration::from_secs(600));
        assert_eq!(
            status("quiet").await,
            "online",
            "an open inbox is being there"
        );
        drop(inbox);
    }
);

story!(a_heartbeat_is_for_oneself, |hub| async {
    // R-66
    let ada = worker(&hub, "ada-1", "adding", 1.0).await;
    hub.agent("bob").await;
    for body in [
        json!({}),
        json!({"agent_id": "ada-1"}),
        json!({"agent_id": "ada-1", "load": 0.5}),
    ] {
        let answer = ada.post("/heartbeat", &body).await;
        assert_eq!(
            (answer.status, &answer.json()["agent_id"]),
            (200, &json!("ada-1")),
            "{answer:?}"
        );
        assert_eq!(
            answer.json()["timestamp_utc"],
            "2026-03-20T10:00:00.000000Z"
        );
    }
    assert_eq!(
        Answer::of(ada.request("POST", "/heartbeat")).await.status,
        200,
        "nothing needs to be said"
    );
    refused(
        &ada.post("/heartbeat", &json!({"agent_id": "bob@chorus"}))
            .await,
        403,
        "ERR_FORBIDDEN",
    );
    refused(
        &ada.post("/heartbeat", &json!({"agent_id": "absent@chorus"}))
            .await,
        403,
        "ERR_FORBIDDEN",
    );
    refused(
        &ada.post("/heartbeat", &json!({"agent_id": 5})).await,
        400,
        "ERR_VALIDATION",
    );
    refused(
        &hub.anonymous().post("/heartbeat", &json!({})).await,
        401,
        "ERR_UNAUTHORIZED",
    );
    refused(
        &hub.operator().post("/heartbeat", &json!({})).await,
        403,
        "ERR_FORBIDDEN",
    );
});

story!(skills_survive_a_restart, |hub| async {
    worker(&hub, "w-1", "adding", 0.10).await;
    let mut both = registration("both@chorus");
    both["skills"] = json!([{"skill_name": "adding", "cost_per_call": 0.05}]);
    hub.anonymous().post("/register", &both).await.data(201);
    hub.restart().await;
    assert_eq!(names(&hub, "skill=adding").await, ["both@chorus", "w-1"]);
});
