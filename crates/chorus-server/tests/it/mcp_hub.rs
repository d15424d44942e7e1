//! The tools of messages and of the market, and what a host can read without a tool.

use crate::actors::market::{boss, job, skill, standing, trader};
use crate::mcp_host::{Host, Revision};
use serde_json::{Value, json};

story!(
    a_message_is_sent_seen_acknowledged_and_read_back_with_tools_alone,
    |hub| async {
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let (from, to) = (Host::of(&alice).await, Host::of(&bob).await);
        let mut receipts = alice.inbox().await;
        let args = json!({"receiver_id": "bob", "text": "Shall we?", "conversation_id": "c1", "turn_number": 1,
        "cultural_context": "a friendly question", "sender_culture": "en-GB", "idempotency_key": "k1"});
        let sent = from.call("chorus_send", args.clone()).await.data();
        assert_eq!(sent["delivery"], "queued");
        assert_eq!(
            from.call("chorus_send", args).await.data(),
            sent,
            "R-27: the same call again is the same message"
        );
        let plain = from
            .call(
                "chorus_send",
                json!({"receiver_id": "bob@chorus", "original_text": "hello"}),
            )
            .await
            .data();

        for _ in 0..2 {
            let seen = to.call("chorus_inbox", json!({})).await.data();
            let events = seen["events"].as_array().unwrap();
            assert_eq!(events.len(), 2, "looking consumes nothing: {seen}");
            assert_eq!(
                (&events[0]["event"], &events[0]["data"]["trace_id"]),
                (&json!("message"), &sent["trace_id"])
            );
            let envelope = &events[0]["data"]["envelope"];
            assert_eq!(
                (&envelope["original_text"], &envelope["sender_culture"]),
                (&json!("Shall we?"), &json!("en-GB"))
            );
            assert_eq!(
                events[1]["data"]["envelope"]["sender_culture"], "en",
                "that of the card"
            );
        }
        assert_eq!(
            alice.standing(&sent["trace_id"]).await["status"],
            "queued",
            "R-38: neither is it a delivery"
        );

        let seen = to
            .call("chorus_inbox", json!({"acknowledge": [sent["trace_id"]]}))
            .await
            .data();
        assert_eq!(
            (
                seen["events"].as_array().unwrap().len(),
                &seen["acknowledged"]
            ),
            (1, &json!([sent["trace_id"]]))
        );
        let receipt = receipts.next("receipt").await;
        assert_eq!(
            (&receipt.data["trace_id"], &receipt.data["response"]),
            (&sent["trace_id"], &json!({"status": "ok"}))
        );
        assert_eq!(
            alice.standing(&sent["trace_id"]).await["status"],
            "acknowledged"
        );

        let after = seen["events"][0]["id"].as_u64().unwrap() - 1;
        let since = to
            .call("chorus_inbox", json!({"since": after, "limit": 1}))
            .await
            .data();
        assert_eq!(
            since["events"][0]["data"]["trace_id"], plain["trace_id"],
            "{since}"
        );
        let place = since["next_since"].to_string();
        let nothing = to
            .call("chorus_inbox", json!({"since": place}))
            .await
            .data();
        assert_eq!(
            (&nothing["events"], &nothing["more"]),
            (&json!([]), &json!(false))
        );
        let heard = from.call("chorus_inbox", json!({"since": 0})).await.data();
        assert_eq!(
            heard["events"][0]["event"], "receipt",
            "everything that came, not messages alone: {heard}"
        );

        for args in [
            json!({}),
            json!({"peer": "alice"}),
            json!({"since": "0"}),
            json!({"since": 0}),
            json!({"since": "2026-01-01T00:00:00Z"}),
        ] {
            let past = to.call("chorus_history", args.clone()).await.data();
            assert_eq!(
                past["messages"].as_array().unwrap().len(),
                2,
                "{args} {past}"
            );
        }
        let one = to
            .call("chorus_history", json!({"conversation_id": "c1"}))
            .await
            .data();
        assert_eq!(
            (
                one["messages"].as_array().unwrap().len(),
                &one["messages"][0]["trace_id"]
            ),
            (1, &sent["trace_id"])
        );
        let none = to
            .call("chorus_history", json!({"peer": "bob"}))
            .await
            .data();
        assert_eq!(none["messages"], json!([]), "nobody wrote to itself");
    }
);

story!(
    a_bad_argument_of_a_message_tool_is_named_and_nothing_is_done,
    |hub| async {
        let alice = hub.agent("alice").await;
        let host = Host::of(&alice).await;
        let long = "x".repeat(10_001);
        for (tool, args, field) in [
            ("chorus_send", json!({"text": "x"}), "receiver_id"),
            ("chorus_send", json!({"receiver_id": "bob"}), "text"),
            (
                "chorus_send",
                json!({"receiver_id": 5, "text": "x"}),
                "receiver_id",
            ),
            (
                "chorus_send",
                json!({"receiver_id": "nobody", "text": "x"}),
                "receiver_id",
            ),
            (
                "chorus_send",
                json!({"receiver_id": "a b", "text": "x"}),
                "receiver_id",
            ),
            (
                "chorus_send",
                json!({"receiver_id": "alice", "text": ""}),
                "text",
            ),
            (
                "chorus_send",
                json!({"receiver_id": "alice", "text": long}),
                "text",
            ),
            (
                "chorus_send",
                json!({"receiver_id": "alice", "text": "x", "sender_culture": "not a tag"}),
                "sender_culture",
            ),
            (
                "chorus_send",
                json!({"receiver_id": "alice", "text": "x", "turn_number": 0}),
                "turn_number",
            ),
            (
                "chorus_send",
                json!({"receiver_id": "alice", "text": "x", "turn_number": 1.5}),
                "turn_number",
            ),
            ("chorus_inbox", json!({"since": -1}), "since"),
            ("chorus_inbox", json!({"since": "soon"}), "since"),
            ("chorus_inbox", json!({"limit": 0}), "limit"),
            (
                "chorus_inbox",
                json!({"acknowledge": ["nothing"]}),
                "acknowledge[0]",
            ),
            ("chorus_history", json!({"since": "yesterday"}), "since"),
            ("chorus_history", json!({"peer": "nobody"}), "peer"),
            ("chorus_discover", json!({"limit": 1001}), "limit"),
            ("chorus_discover", json!({"after": "nobody"}), "after"),
            ("chorus_discover", json!({"online": "yes"}), "online"),
        ] {
            let said = host.call(tool, args.clone()).await.refused(field);
            assert!(said.len() < 400, "{said}");
        }
        assert!(alice.history("").await.is_empty());
    }
);

story!(agents_are_found_by_culture_and_presence, |hub| async {
    let alice = hub.agent("alice").await;
    let card = json!({"agent_card": {"card_version": "0.3", "user_culture": "ja", "supported_languages": ["ja", "en-GB"]}});
    let yuki = hub.agent_like("yuki@chorus", &card).await;
    let _inbox = yuki.inbox().await;
    let host = Host::of(&alice).await;
    let found = async |args: Value| {
        let found = host.call("chorus_discover", args).await.data();
        let ids: Vec<String> = found["agents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["agent_id"].as_str().unwrap().into())
            .collect();
        (ids, found["next_after"].as_str().map(str::to_owned))
    };
    assert_eq!(
        found(json!({})).await,
        (vec!["alice@chorus".into(), "yuki@chorus".into()], None)
    );
    assert_eq!(found(json!({"culture": "ja"})).await.0, ["yuki@chorus"]);
    assert_eq!(
        found(json!({"culture": "en", "online": true})).await.0,
        ["yuki@chorus"]
    );
    assert_eq!(
        found(json!({"limit": 1})).await,
        (vec!["alice@chorus".into()], Some("alice@chorus".into()))
    );
    assert_eq!(
        found(json!({"limit": 1, "after": "alice@chorus"})).await.0,
        ["yuki@chorus"]
    );
});

story!(
    a_skill_is_found_hired_done_and_paid_with_tools_alone,
    |hub| async {
        let (boss, worker) = (
            boss(&hub).await,
            trader(&hub, "worker-1", skill(0.10), None).await,
        );
        let (hirer, doer) = (Host::of(&boss).await, Host::of(&worker).await);
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
        assert_eq!(
            hirer.call("market_balance", json!({})).await.data()["balance"],
            100.0
        );
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
        assert_eq!(
            hirer.call("market_balance", json!({})).await.data()["held"],
            0.15
        );

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
        assert_eq!(
            hirer.call("market_balance", json!({})).await.data()["balance"],
            99.9
        );
        assert_eq!(
            doer.call("market_balance", json!({})).await.data()["balance"],
            100.1
        );
    }
);

story!(
    a_bad_argument_of_a_market_tool_is_named_and_nothing_is_held,
    |hub| async {
        let (boss, worker) = (
            boss(&hub).await,
            trader(&hub, "worker-1", skill(0.10), None).await,
        );
        let (hirer, doer) = (Host::of(&boss).await, Host::of(&worker).await);
        crate::actors::market::hired(&boss, &job("job-1")).await;
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
            (hire(json!({"agent_id": "nobody"})), "agent_id"),
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
                json!({"job_id": "job-1", "status": "PENDING"}),
                "status",
            ),
            (
                "market_result",
                json!({"job_id": "job-1", "status": "SUCCESS", "execution_cost": 9}),
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
        assert_eq!(standing(&worker, "job-1").await["status"], "PENDING");
        assert_eq!(
            hirer.call("market_balance", json!({})).await.data()["held"],
            0.15
        );
    }
);

story!(
    a_host_reads_the_guide_the_directory_and_a_conversation,
    |hub| async {
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        alice.says("bob@chorus", "hello", "queued").await;
        for revision in Revision::BOTH {
            let host = Host::of(&alice).await.speaking(revision);
            let listed = host.result("resources/list", json!({})).await;
            let uris: Vec<&str> = listed["resources"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["uri"].as_str().unwrap())
                .collect();
            assert_eq!(
                uris,
                [
                    "chorus://skill/en",
                    "chorus://skill/zh-CN",
                    "chorus://directory",
                    "chorus://frames"
                ]
            );
            for uri in uris {
                let read = host.result("resources/read", json!({"uri": uri})).await;
                assert_eq!(read["contents"][0]["uri"], uri);
                assert!(
                    read["contents"][0]["text"].as_str().unwrap().len() > 20,
                    "{uri}"
                );
            }
            let templates = host.result("resources/templates/list", json!({})).await;
            assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 2);
            for uri in [
                "chorus://conversation/bob@chorus",
                "chorus://conversation/bob%40chorus",
                "chorus://conversation/~bob",
            ] {
                let read = host.result("resources/read", json!({"uri": uri})).await;
                let rows: Value =
                    serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
                assert_eq!(rows[0]["envelope"]["original_text"], "hello", "{uri}");
            }
            let missing = if revision == Revision::Stateless {
                -32602
            } else {
                -32002
            };
            for uri in [
                "chorus://conversation/nobody",
                "chorus://skill/xx",
                "chorus://x",
                "file:///etc/passwd",
            ] {
                assert_eq!(
                    host.fault("resources/read", json!({"uri": uri})).await,
                    missing,
                    "{uri}"
                );
            }
        }
        let guide = Host::of(&bob)
            .await
            .result("resources/read", json!({"uri": "chorus://skill/en"}))
            .await;
        assert!(
            guide["contents"][0]["text"]
                .as_str()
                .unwrap()
                .contains(&hub.url),
            "with this hub's own address"
        );
    }
);

live_story!(
    a_person_picks_a_prompt_and_the_model_gets_the_whole_task,
    |hub| async {
        let alice = hub.agent("alice").await;
        let card = json!({"agent_card": {"card_version": "0.3", "user_culture": "ja", "supported_languages": ["ja"]}});
        hub.agent_like("yuki@chorus", &card).await;
        for revision in Revision::BOTH {
            let host = Host::of(&alice).await.speaking(revision);
            let listed = host.result("prompts/list", json!({})).await;
            assert_eq!(listed["prompts"].as_array().unwrap().len(), 2, "{listed}");
            let args = json!({"receiver_id": "yuki@chorus", "text": "Break a leg!"});
            let got = host
                .result(
                    "prompts/get",
                    json!({"name": "cross_cultural_message", "arguments": args}),
                )
                .await;
            let text = got["messages"][0]["content"]["text"].as_str().unwrap();
            assert!(
                text.contains("yuki@chorus")
                    && text.contains("culture is ja")
                    && text.contains("Break a leg!"),
                "{text}"
            );
            let got = host
                .result(
                    "prompts/get",
                    json!({"name": "handover", "arguments": {"scope": "~alice/cc-*"}}),
                )
                .await;
            assert!(
                got["messages"][0]["content"]["text"]
                    .as_str()
                    .unwrap()
                    .contains("~alice/cc-*")
            );
            for (name, args) in [
                ("cross_cultural_message", json!({"text": "x"})),
                ("none", json!({})),
            ] {
                assert_eq!(
                    host.fault("prompts/get", json!({"name": name, "arguments": args}))
                        .await,
                    -32602,
                    "{name}"
                );
            }
        }
    }
);
