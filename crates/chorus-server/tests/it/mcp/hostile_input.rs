//! Hostile input to the tools: odd arguments, floods of messages, very large rows.

use super::host_client::McpHost;
use crate::support::actors::channel::{add_agent, create_channel, post_message};
use crate::support::actors::market::{
    job_request, register_requester, register_trader, skill_offer,
};
use serde_json::{Value, json};

/// Arguments with which each tool that does not only look does something.
fn good(tool: &str, channel: &str) -> Value {
    let lease = "6f1c5e0b-8d3a-4f0e-9a57-2f6f3f0c9d11";
    match tool {
        "chorus_send" => json!({"receiver_id": "bob", "text": "x"}),
        "agent_send" => json!({"kind": "agent_advisory", "payload": {"advisory_text": "x"}}),
        "agent_advise" => json!({"advisory_text": "x"}),
        "agent_broadcast" => json!({"broadcast_text": "x", "event_class": "other"}),
        "agent_handover" => json!({"handover_body": "x"}),
        "agent_lock_acquire" => json!({"resource": "x"}),
        "agent_lock_release" => json!({"lease_id": lease}),
        "agent_lease_extend" => json!({"lease_id": lease, "ttl_ms": 1}),
        "agent_query" => json!({"query_text": "x"}),
        "agent_respond" => json!({"query_id": lease, "response_text": "x"}),
        "channel_post" => json!({"channel_id": channel, "content": "x"}),
        "channel_join" => json!({"channel_id": channel}),
        "channel_history" => json!({"channel_id": channel}),
        "send_message" => json!({"content": "x"}),
        "set_status" => json!({"status": "x"}),
        "artifact_read" => json!({"slug": "a"}),
        "artifact_create" => json!({"slug": "a", "content": "x"}),
        "artifact_edit" => json!({"slug": "a", "version": 1, "content": "x"}),
        "file_put" => json!({"name": "a", "data": ""}),
        "file_get" => json!({"name": "a"}),
        "market_hire" => json!({"skill_name": "juggle", "input_data": {}, "budget": 1}),
        "market_result" => json!({"job_id": "none", "status": "SUCCESS"}),
        "market_act" => json!({"job_id": "none", "act": "claim"}),
        "market_offer" => json!({"skill_name": "juggle", "withdraw": true}),
        "market_transfer" => json!({"to_owner": "none", "amount": 1}),
        _ => json!({}),
    }
}

/// Each argument of each tool, one after the other, in every odd way.
async fn try_everything(host: &McpHost, channel: &str) {
    let mut broken = Vec::new();
    let odd = [
        json!("a\u{0}b"),
        json!("\u{202e}%00'\"\\"),
        json!(""),
        json!("x".repeat(300)),
        json!(5.0),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!(true),
        json!([]),
        json!([7]),
        json!({"": null}),
        json!(null),
    ];
    for tool in host.names() {
        let schema = host.schema(tool);
        for argument in schema["properties"].as_object().unwrap().keys() {
            for value in &odd {
                let mut args = good(tool, channel);
                args[argument] = value.clone();
                let called = host.call(tool, args).await.0;
                let said = called["content"][0]["text"].as_str().unwrap();
                let ours = ["ERR_INTERNAL", "ERR_UNAVAILABLE", "arguments: "];
                if called["isError"] == true && ours.iter().any(|ours| said.contains(ours)) {
                    broken.push(format!("{tool}.{argument} = {value}: {said}"));
                }
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

story!(
    no_argument_however_odd_makes_a_tool_fail_inside,
    |hub| async {
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let path = create_channel(&alice, "odd").await;
        add_agent(&alice, &path, &bob).await;
        let mut inbox = bob.inbox().await;
        post_message(&alice, &path, "@bob come").await;
        let delivery = inbox.next("channel").await.data;
        let id = path.strip_prefix("/channels/").unwrap();
        for path in ["/channels/a%00b", "/jobs/a%00b"] {
            assert_eq!(alice.get(path).await.status, 404, "{path}");
        }
        try_everything(&McpHost::of(&alice).await, id).await;
        try_everything(&McpHost::for_delivery(&hub, &delivery).await, id).await;
    }
);

story!(
    a_whole_number_is_one_however_it_is_written_and_one_out_of_bounds_is_named,
    |hub| async {
        let alice = hub.agent("alice").await;
        let host = McpHost::of(&alice).await;
        host.call("chorus_history", json!({"limit": 5.0, "since": 0.0}))
            .await
            .data();
        host.call(
            "chorus_send",
            json!({"receiver_id": "alice", "text": "x", "turn_number": 2.0}),
        )
        .await
        .data();
        assert_eq!(
            alice.history("").await[0]["envelope"]["turn_number"].to_string(),
            "2"
        );
        for (tool, args, field) in [
            ("chorus_history", json!({"since": 1e300}), "since"),
            ("chorus_inbox", json!({"since": u64::MAX}), "since"),
            (
                "chorus_send",
                json!({"receiver_id": "alice", "text": "x", "turn_number": 1e300}),
                "turn_number",
            ),
            (
                "market_result",
                json!({"job_id": "j", "status": "FAILURE", "execution_time_ms": 1e300}),
                "execution_time_ms",
            ),
        ] {
            host.call(tool, args).await.refused(field);
        }
    }
);

story!(
    an_empty_inbox_says_from_where_receipts_and_results_are_heard,
    |hub| async {
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let (from, to) = (McpHost::of(&alice).await, McpHost::of(&bob).await);
        from.call(
            "chorus_send",
            json!({"receiver_id": "bob", "text": "before"}),
        )
        .await
        .data();
        let empty = from.call("chorus_inbox", json!({})).await.data();
        assert_eq!(
            (&empty["events"], &empty["more"]),
            (&json!([]), &json!(false))
        );
        let sent = from
            .call(
                "chorus_send",
                json!({"receiver_id": "bob", "text": "after"}),
            )
            .await
            .data();
        to.call("chorus_inbox", json!({"acknowledge": [sent["trace_id"]]}))
            .await
            .data();
        let said = to
            .call(
                "chorus_inbox",
                json!({"acknowledge": [sent["trace_id"], "none"]}),
            )
            .await;
        assert!(
            said.refused("acknowledge[1]")
                .contains("those before it are acknowledged"),
            "{said:?}"
        );
        let heard = from
            .call("chorus_inbox", json!({"since": empty["next_since"]}))
            .await
            .data();
        // the other message was shown by the same calls.
        let events = heard["events"].as_array().unwrap().iter();
        let kinds: Vec<_> = events.clone().map(|event| &event["event"]).collect();
        assert_eq!(kinds, ["receipt", "shown"], "{heard}");
        let receipt = events.clone().next().unwrap();
        assert_eq!(receipt["data"]["trace_id"], sent["trace_id"]);
    }
);

story!(
    history_begins_with_the_latest_and_a_page_says_that_there_is_more,
    |hub| async {
        let (alice, bob, eve) = (
            hub.agent("alice").await,
            hub.agent("bob").await,
            hub.agent("eve").await,
        );
        for n in 0..6 {
            for (from, text) in [(&bob, "b"), (&eve, "e")] {
                let args = json!({"receiver_id": "alice", "text": format!("{text}{n}"), "conversation_id": format!("c{}", n / 3)});
                McpHost::of(from)
                    .await
                    .call("chorus_send", args)
                    .await
                    .data();
            }
        }
        let host = McpHost::of(&alice).await;
        let read = async |args: Value| {
            let data = host.call("chorus_history", args).await.data();
            let rows = data["messages"].as_array().unwrap().iter();
            let texts: Vec<String> = rows
                .map(|row| row["envelope"]["original_text"].as_str().unwrap().into())
                .collect();
            (
                texts.join(" "),
                data["more"] == true,
                data["next_since"].clone(),
            )
        };
        assert_eq!(read(json!({"limit": 3})).await.0, "e4 b5 e5");
        let (texts, more, place) = read(json!({"limit": 3, "since": 0})).await;
        assert_eq!((texts.as_str(), more), ("b0 e0 b1", true));
        assert_eq!(read(json!({"limit": 2, "since": place})).await.0, "e1 b2");
        let (texts, more, place) = read(json!({"peer": "bob", "since": 0, "limit": 4})).await;
        assert_eq!(
            (texts.as_str(), more),
            ("b0 b1 b2 b3", true),
            "none of those in between is passed over"
        );
        let (texts, more, _) = read(json!({"peer": "bob", "since": place, "limit": 4})).await;
        assert_eq!((texts.as_str(), more), ("b4 b5", false));
        assert_eq!(read(json!({"peer": "bob", "limit": 2})).await.0, "b4 b5");
        let (texts, more, _) = read(json!({"conversation_id": "c0", "limit": 3})).await;
        assert_eq!(
            (texts.as_str(), more),
            ("e1 b2 e2", true),
            "also behind later ones"
        );
        let (texts, more, place) =
            read(json!({"conversation_id": "c1", "since": 0, "limit": 4})).await;
        assert_eq!((texts.as_str(), more), ("b3 e3 b4 e4", true));
        assert_eq!(
            read(json!({"conversation_id": "c1", "since": place}))
                .await
                .0,
            "b5 e5"
        );
        assert_eq!(read(json!({"conversation_id": "none"})).await.0, "");
    }
);

/// The first character of each row's text, or a dash for a row without one.
fn first_chars(rows: &Value, text: impl Fn(&Value) -> Value) -> String {
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| {
        text(row)
            .as_str()
            .map_or('-', |text| text.chars().next().unwrap())
    })
    .collect()
}

story!(
    a_flood_of_long_messages_is_read_in_pages_that_a_host_takes,
    |hub| async {
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let path = create_channel(&alice, "long").await;
        let long = "\u{6f22}".repeat(9_000);
        for n in 0..5 {
            bob.send_expecting("alice@chorus", &format!("{n}{long}"), "queued")
                .await;
            post_message(&alice, &path, &format!("{n}{long}")).await;
        }
        let host = McpHost::of(&alice).await;
        let id = path.strip_prefix("/channels/").unwrap();
        let said = |row: &Value| row["data"]["envelope"]["original_text"].clone();
        let (mut seen, mut place) = (String::new(), json!(0));
        for more in [true, true, false] {
            let page = host
                .call("chorus_inbox", json!({"since": place}))
                .await
                .data();
            assert!(page.to_string().len() < 80_000);
            assert_eq!(page["more"], more, "{seen}");
            seen += &first_chars(&page["events"], said);
            place = page["next_since"].clone();
        }
        assert_eq!(seen, "01234", "nothing is passed over");
        let latest = host.call("chorus_history", json!({})).await.data();
        assert_eq!(
            first_chars(&latest["messages"], |row| row["envelope"]["original_text"]
                .clone()),
            "34"
        );
        assert_eq!(latest["more"], true);
        let content = |row: &Value| row["content"].clone();
        let latest = host
            .call("channel_history", json!({"channel_id": id}))
            .await
            .data();
        assert_eq!(
            (
                first_chars(&latest["lines"], content).as_str(),
                &latest["more"]
            ),
            ("34", &json!(true))
        );
        let (mut seen, mut place) = (String::new(), json!(0));
        for _ in 0..4 {
            let page = host
                .call("channel_history", json!({"channel_id": id, "since": place}))
                .await
                .data();
            assert!(page.to_string().len() < 80_000);
            seen += &first_chars(&page["lines"], content);
            place = page["next_since"].clone();
        }
        assert_eq!(seen.replace('-', ""), "01234");
        for uri in [
            "chorus://conversation/bob".to_owned(),
            format!("chorus://channel/{id}/history"),
        ] {
            let read = host.result("resources/read", json!({"uri": uri})).await;
            assert!(
                read["contents"][0]["text"].as_str().unwrap().len() < 80_000,
                "{uri}"
            );
        }
    }
);

story!(
    jobs_are_followed_page_by_page_and_a_strangers_is_no_place_to_go_on_from,
    |hub| async {
        let (boss, worker) = (
            register_requester(&hub).await,
            register_trader(&hub, "worker-1", skill_offer(0.10), None).await,
        );
        for id in ["job-1", "job-2", "job-3"] {
            crate::support::actors::market::request_job(&boss, &job_request(id)).await;
        }
        let host = McpHost::of(&worker).await;
        let page = host.call("market_job", json!({"limit": 2})).await.data();
        let ids = |page: &Value| -> Vec<Value> {
            page["jobs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|job| job["job_id"].clone())
                .collect()
        };
        assert_eq!(
            (ids(&page), &page["more"]),
            (vec![json!("job-3"), json!("job-2")], &json!(true))
        );
        let rest = host
            .call("market_job", json!({"limit": 2, "before": "job-2"}))
            .await
            .data();
        assert_eq!(
            (ids(&rest), &rest["more"]),
            (vec![json!("job-1")], &json!(false))
        );
        let stranger = McpHost::of(&hub.agent("eve").await).await;
        let known = stranger
            .call("market_job", json!({"before": "job-1"}))
            .await
            .refused("before");
        let unknown = stranger
            .call("market_job", json!({"before": "job-9"}))
            .await
            .refused("before");
        assert_eq!(known.replace("job-1", "job-9"), unknown);
    }
);

memory_story!(a_culture_is_never_made_up, |hub| async {
    hub.agent("alice").await;
    let market: Value = hub
        .anonymous()
        .post("/register", &json!({"agent_id": "m-1", "owner_id": "o"}))
        .await
        .json();
    let agent = crate::support::actors::Agent::new(
        &hub.anonymous().0,
        "m-1",
        market["api_key"].as_str().unwrap(),
    );
    let nameless = json!({"receiver_id": "alice", "text": "x", "sender_culture": "ja"});
    let said = McpHost::of(&agent)
        .await
        .call("chorus_send", nameless)
        .await
        .refused("name@host");
    assert!(!said.contains("sender_id"), "that is no argument: {said}");
    let data = hub
        .anonymous()
        .post("/register", &json!({"agent_id": "bare@chorus"}))
        .await
        .data(201);
    let bare = crate::support::actors::Agent::new(
        &hub.anonymous().0,
        "bare@chorus",
        data["api_key"].as_str().unwrap(),
    );
    let host = McpHost::of(&bare).await;
    host.call("chorus_send", json!({"receiver_id": "alice", "text": "x"}))
        .await
        .refused("sender_culture");
    host.call(
        "chorus_send",
        json!({"receiver_id": "alice", "text": "x", "sender_culture": "ja"}),
    )
    .await
    .data();
});

memory_story!(
    a_challenge_repeats_nothing_that_could_be_read_as_part_of_it,
    |hub| async {
        let refused = hub
            .anonymous()
            .post("/mcp/ch_%22,%20error=%22x", &json!({}))
            .await;
        assert_eq!(
            (refused.status, refused.header("www-authenticate")),
            (401, "Bearer realm=\"chorus\""),
            "{refused:?}"
        );
    }
);
