//! The tools of the market: a skill is found, hired, done and paid over MCP.

use super::host_client::McpHost;
use crate::support::actors::market::{
    job_request, job_state, register_requester, register_trader, skill_offer,
};
use crate::support::actors::{Agent, Answer};
use crate::support::hub::Hub;
use serde_json::{Value, json};

/// A requester, and a worker that offers a skill for 0.10.
async fn register_both(hub: &Hub) -> (Agent, Agent) {
    (
        register_requester(hub).await,
        register_trader(hub, "worker-1", skill_offer(0.10), None).await,
    )
}

async fn read_balance(host: &McpHost) -> Value {
    host.call("market_balance", json!({})).await.data()
}

story!(
    a_worker_under_another_host_is_found_with_its_mark,
    |hub| async {
        // R-98
        let (boss, _) = register_both(&hub).await;
        let foreign = hub.agent_with("worker@elsewhere.example", &json!({})).await;
        let mut offer = skill_offer(0.10)[0].clone();
        offer.as_object_mut().unwrap().remove("skill_name");
        let offered = foreign.request("PUT", "/skills/analyze_text").json(&offer);
        assert_eq!(Answer::of(offered).await.status, 201);
        let hirer = McpHost::of(&boss).await;
        let args = json!({"skill_name": "analyze_text"});
        let found = hirer.call("market_discover", args).await.data();
        let mut marks: Vec<_> = found["agents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["agent_id"].to_string(), row["host_verified"].clone()))
            .collect();
        marks.sort_by(|one, other| one.0.cmp(&other.0));
        let expected = [
            (r#""worker-1""#.to_owned(), Value::Null),
            (r#""worker@elsewhere.example""#.to_owned(), json!(false)),
        ];
        assert_eq!(marks, expected);
    }
);

story!(
    a_skill_is_found_hired_done_and_paid_with_tools_alone,
    |hub| async {
        let (boss, worker) = register_both(&hub).await;
        let (hirer, doer) = (McpHost::of(&boss).await, McpHost::of(&worker).await);
        let found = hirer
            .call(
                "market_discover",
                json!({"skill_name": "analyze_text", "max_cost": 0.1}),
            )
            .await
            .data();
        assert_eq!(
            (&found["total"], &found["agents"][0]["agent_id"]),
            (&json!(1), &json!("worker-1"))
        );
        assert_eq!(read_balance(&hirer).await["balance"], 100.0);
        let args = json!({"skill_name": "analyze_text", "input_data": {"text": "x"}, "budget": 0.15, "job_id": "job-1"});
        let hired = hirer.call("market_hire", args.clone()).await.data();
        assert_eq!(
            (&hired["status"], &hired["agent_id"]),
            (&json!("PENDING"), &json!("worker-1"))
        );
        assert_eq!(
            hirer.call("market_hire", args).await.data()["job_id"],
            "job-1",
            "the same call is the same job"
        );
        assert_eq!(read_balance(&hirer).await["held"], 0.15);

        let waits = doer
            .call("market_job", json!({"role": "worker", "status": "PENDING"}))
            .await
            .data();
        assert_eq!(waits["jobs"][0]["job_id"], "job-1");
        let whole = doer
            .call("market_job", json!({"job_id": "job-1"}))
            .await
            .data();
        assert_eq!(whole["jobs"][0]["input_data"], json!({"text": "x"}));
        let seen = doer.call("chorus_inbox", json!({"since": 0})).await.data();
        assert_eq!(
            (
                &seen["events"][0]["event"],
                &seen["events"][0]["data"]["job_id"]
            ),
            (&json!("job"), &json!("job-1"))
        );

        let result = json!({"job_id": "job-1", "status": "SUCCESS", "output_data": {"entities": [1]}, "execution_cost": 0.1});
        let done = doer.call("market_result", result).await.data();
        assert_eq!(
            (&done["status"], &done["execution_cost"]),
            (&json!("SUCCESS"), &json!(0.1))
        );
        let told = hirer
            .call("market_job", json!({"job_id": "job-1"}))
            .await
            .data();
        assert_eq!(told["jobs"][0]["output_data"], json!({"entities": [1]}));
        assert_eq!(read_balance(&hirer).await["balance"], 99.9);
        assert_eq!(read_balance(&doer).await["balance"], 100.1);
    }
);

story!(
    a_bad_argument_of_a_market_tool_is_named_and_nothing_is_held,
    |hub| async {
        let (boss, worker) = register_both(&hub).await;
        let (hirer, doer) = (McpHost::of(&boss).await, McpHost::of(&worker).await);
        crate::support::actors::market::request_job(&boss, &job_request("job-1")).await;
        let hire = |more: Value| {
            let mut args =
                json!({"skill_name": "analyze_text", "input_data": {"text": "x"}, "budget": 0.15});
            args.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            args
        };
        for (args, field) in [
            (
                json!({"skill_name": "analyze_text", "budget": 1}),
                "input_data",
            ),
            (hire(json!({"budget": 0})), "budget"),
            (hire(json!({"budget": 0.155})), "budget"),
            (hire(json!({"budget": 0.01})), "budget"),
            (hire(json!({"budget": 1000})), "budget"),
            (hire(json!({"skill_name": "juggle"})), "skill_name"),
            (hire(json!({"agent_id": "absent"})), "agent_id"),
            (hire(json!({"input_data": {}})), "input_data"),
            (hire(json!({"input_data": "x"})), "input_data"),
            (hire(json!({"deadline_ms": 0})), "deadline_ms"),
            (hire(json!({"job_id": "job-1"})), "job_id"),
        ] {
            hirer.call("market_hire", args).await.refused(field);
        }
        for (tool, args, field) in [
            ("market_discover", json!({"max_cost": 0.123}), "max_cost"),
            (
                "market_discover",
                json!({"min_reputation": -1}),
                "min_reputation",
            ),
            ("market_job", json!({"job_id": "none"}), "job_id"),
            ("market_job", json!({"role": "king"}), "role"),
            ("market_job", json!({"status": "DONE"}), "status"),
            (
                "market_result",
                json!({"job_id": "none", "status": "SUCCESS"}),
                "job_id",
            ),
            (
                "market_result",
                json!({"job_id": "job-1", "status": "WAITING"}),
                "status",
            ),
            (
                "market_result",
                json!({"job_id": "job-1", "status": "SUCCESS", "output_data": {"entities": []}, "execution_cost": 9}),
                "execution_cost",
            ),
            (
                "market_balance",
                json!({"owner_id": "owner-of-boss-1"}),
                "owner_id",
            ),
        ] {
            doer.call(tool, args).await.refused(field);
        }
        assert_eq!(job_state(&worker, "job-1").await["status"], "PENDING");
        assert_eq!(read_balance(&hirer).await["held"], 0.15);
    }
);

story!(
    a_skill_is_offered_and_the_board_worked_with_tools_alone,
    |hub| async {
        let boss = register_requester(&hub).await;
        let worker = register_trader(&hub, "worker-1", json!([]), None).await;
        let (hirer, doer) = (McpHost::of(&boss).await, McpHost::of(&worker).await);
        let offer = json!({"skill_name": "adding", "cost_per_call": 0.05, "description": "Adds", "input_schema": {"a": "number"}});
        assert_eq!(
            doer.call("market_offer", offer).await.data()["offered"],
            true
        );
        let found = hirer
            .call("market_discover", json!({"skill_name": "adding"}))
            .await
            .data();
        assert_eq!(
            found["agents"][0]["skill"]["input_schema"],
            json!({"a": "number"})
        );
        let args = json!({"skill_name": "adding", "input_data": {"a": 1}, "budget": 0.1, "job_id": "job-1", "board": true,
        "approve_within_ms": 60_000});
        assert_eq!(
            hirer.call("market_hire", args).await.data()["state"],
            "open"
        );
        let board = doer.call("market_job", json!({"board": true})).await.data();
        assert_eq!(board["jobs"][0]["input_data"], json!({"a": 1}));
        let claimed = doer
            .call("market_act", json!({"job_id": "job-1", "act": "claim"}))
            .await
            .data();
        assert_eq!(claimed["agent_id"], "worker-1");
        let question = json!({"job_id": "job-1", "status": "PENDING", "question": "And b?"});
        assert_eq!(
            doer.call("market_result", question).await.data()["state"],
            "input-required"
        );
        let answer = json!({"job_id": "job-1", "act": "answer", "text": "2"});
        assert_eq!(hirer.call("market_act", answer).await.data()["answer"], "2");
        let result = json!({"job_id": "job-1", "status": "SUCCESS", "output_data": {"sum": 3}});
        assert_eq!(
            doer.call("market_result", result).await.data()["state"],
            "delivered"
        );
        let approved = hirer
            .call("market_act", json!({"job_id": "job-1", "act": "approve"}))
            .await
            .data();
        assert_eq!(approved["status"], "SUCCESS");
        let transfer = json!({"to_owner": "owner-of-worker-1", "amount": 1.5});
        let paid = hirer.call("market_transfer", transfer).await.data();
        assert_eq!(paid["balance"], 98.45);
        let args = json!({"skill_name": "adding", "input_data": {"a": 1}, "budget": 0.1, "job_id": "job-2"});
        hirer.call("market_hire", args).await.data();
        let cancelled = hirer
            .call("market_act", json!({"job_id": "job-2", "act": "cancel"}))
            .await
            .data();
        assert_eq!(cancelled["state"], "cancelled");
        let withdrawn = doer
            .call(
                "market_offer",
                json!({"skill_name": "adding", "withdraw": true}),
            )
            .await
            .data();
        assert_eq!(withdrawn["offered"], false);
    }
);

story!(
    a_delivery_is_rejected_and_a_payment_repeated_with_tools_alone,
    |hub| async {
        // R-65, R-88, R-89
        let boss = register_requester(&hub).await;
        let worker = register_trader(&hub, "worker-1", json!([]), None).await;
        let (hirer, doer) = (McpHost::of(&boss).await, McpHost::of(&worker).await);
        let offer = json!({"skill_name": "adding", "cost_per_call": 0.05, "description": "Adds", "output_schema": {"sum": "number"}});
        doer.call("market_offer", offer).await.data();
        let found = hirer
            .call("market_discover", json!({"skill_name": "adding"}))
            .await
            .data();
        let skill = &found["agents"][0]["skill"];
        assert_eq!(
            (&skill["description"], &skill["output_schema"]),
            (&json!("Adds"), &json!({"sum": "number"}))
        );
        assert_eq!(found["agents"][0]["distinct_hirers"], 0);
        let hire = |more: Value| {
            let mut args =
                json!({"skill_name": "adding", "input_data": {}, "budget": 0.1, "job_id": "job-1"});
            let args_map = args.as_object_mut().unwrap();
            args_map.extend(more.as_object().unwrap().clone());
            args
        };
        for (more, field) in [
            (json!({"board": true, "agent_id": "worker-1"}), "agent_id"),
            (json!({"approve_within_ms": 60_000}), "approve_within_ms"),
        ] {
            hirer.call("market_hire", hire(more)).await.refused(field);
        }
        let terms = json!({"board": true, "approve_within_ms": 60_000});
        hirer.call("market_hire", hire(terms)).await.data();
        doer.call("market_act", json!({"job_id": "job-1", "act": "claim"}))
            .await
            .data();
        let note = json!({"job_id": "job-1", "status": "PENDING", "progress": "half of it"});
        let noted = doer.call("market_result", note).await.data();
        assert_eq!(noted["progress"], "half of it");
        let result = json!({"job_id": "job-1", "status": "SUCCESS", "output_data": {"sum": 3}});
        doer.call("market_result", result).await.data();
        let reject = json!({"job_id": "job-1", "act": "reject", "text": "It is 4."});
        let rejected = hirer.call("market_act", reject).await.data();
        assert_eq!(
            (&rejected["error_code"], &rejected["error_message"]),
            (&json!("REJECTED"), &json!("It is 4."))
        );
        assert_eq!(read_balance(&hirer).await["balance"], 100.0);

        let pay = json!({"to_owner": "owner-of-worker-1", "amount": 1, "transfer_id": "t-1"});
        for _ in 0..2 {
            let paid = hirer.call("market_transfer", pay.clone()).await.data();
            assert_eq!(paid["balance"], 99.0, "the same transfer is made once");
        }
        // The hub pays for its own jobs.
        let twice = json!({"to_owner": "owner-of-worker-1", "amount": 1, "job_id": "job-1"});
        hirer.call("market_transfer", twice).await.refused("job_id");
        let withdraw = json!({"skill_name": "adding", "withdraw": true});
        doer.call("market_offer", withdraw).await.data();
        let found = hirer
            .call("market_discover", json!({"skill_name": "adding"}))
            .await
            .data();
        assert_eq!(found["total"], 0);
    }
);
