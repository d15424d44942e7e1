//! The MCP endpoint: both protocol revisions, authentication, origins, and refusals.

use super::host_client::{McpHost, Revision};
use crate::support::actors::Answer;
use serde_json::{Value, json};

const HUB_TOOLS: [&str; 28] = [
    "agent_advise",
    "agent_broadcast",
    "agent_frames",
    "agent_handover",
    "agent_lease_extend",
    "agent_lock_acquire",
    "agent_lock_release",
    "agent_query",
    "agent_respond",
    "agent_roster",
    "agent_send",
    "agent_subscribe",
    "channel_history",
    "channel_join",
    "channel_list",
    "channel_post",
    "chorus_discover",
    "chorus_history",
    "chorus_inbox",
    "chorus_send",
    "market_act",
    "market_balance",
    "market_discover",
    "market_hire",
    "market_job",
    "market_offer",
    "market_result",
    "market_transfer",
];

memory_story!(
    a_host_with_a_handshake_and_one_without_get_the_same_tools,
    |hub| async {
        let alice = hub.agent("alice").await;
        let old = McpHost::new(&alice, "/mcp", Revision::Handshake);
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "story", "version": "1"}});
        let met = old.result("initialize", hello).await;
        assert_eq!(
            (&met["protocolVersion"], &met["serverInfo"]["name"]),
            (&json!("2025-11-25"), &json!("chorus"))
        );
        for able in ["tools", "resources", "prompts"] {
            assert!(met["capabilities"][able].is_object(), "{met}");
        }
        assert!(
            met["instructions"]
                .as_str()
                .unwrap()
                .contains("chorus_inbox")
        );
        let notified = alice
            .request("POST", "/mcp")
            .header("accept", "application/json, text/event-stream");
        let notified = notified.header("mcp-protocol-version", "2025-11-25");
        let notified = Answer::of(
            notified.json(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})),
        )
        .await;
        assert_eq!((notified.status, notified.text.as_str()), (202, ""));
        assert_eq!(old.result("ping", json!({})).await, json!({}));

        let new = McpHost::new(&alice, "/mcp", Revision::Stateless);
        let found = new.result("server/discover", json!({})).await;
        let versions: Vec<&str> = found["supportedVersions"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert!(
            versions.contains(&"2026-07-28") && versions.contains(&"2025-11-25"),
            "{found}"
        );
        for host in [&old, &new] {
            let tools = host.result("tools/list", json!({})).await;
            let mut names: Vec<&str> = tools["tools"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| tool["name"].as_str().unwrap())
                .collect();
            names.sort_unstable();
            assert_eq!(names, HUB_TOOLS);
        }
        assert_eq!(
            new.result("tools/list", json!({})).await["resultType"],
            "complete"
        );
    }
);

memory_story!(
    what_a_tool_says_of_itself_is_enough_to_use_it,
    |hub| async {
        let host = McpHost::of(&hub.agent("alice").await).await;
        host.is_well_described().await;
        assert_eq!(chorus_server::mcp::list_hub_tools().len(), HUB_TOOLS.len());
    }
);

memory_story!(
    the_tools_cost_little_and_a_host_chooses_among_them,
    |hub| async {
        let alice = hub.agent("alice").await;
        let list = async |path: &str| {
            McpHost::new(&alice, path, Revision::Stateless)
                .result("tools/list", json!({}))
                .await
        };
        // Every conversation of a model carries the list: less than a kilobyte for each tool.
        let all = list("/mcp").await.to_string();
        assert!(all.len() <= 24 * 1024, "{} bytes", all.len());
        let chosen = list("/mcp?tools=messages,market").await;
        let names: Vec<&str> = chosen["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert!(
            names.contains(&"chorus_send") && names.contains(&"market_hire"),
            "{names:?}"
        );
        assert!(
            names
                .iter()
                .all(|name| name.starts_with("chorus_") || name.starts_with("market_")),
            "{names:?}"
        );
        let host = McpHost::new(&alice, "/mcp?tools=market", Revision::Stateless);
        let params = json!({"name": "chorus_inbox", "arguments": {}});
        assert_eq!(host.error_code("tools/call", params).await, -32602);
        let refused = McpHost::new(&alice, "/mcp?tools=mail", Revision::Stateless)
            .ask("tools/list", json!({}))
            .await;
        assert!(
            refused.refused(400, "ERR_VALIDATION").contains("tools"),
            "{refused:?}"
        );
    }
);

memory_story!(
    a_client_without_a_key_is_told_where_to_read_about_it,
    |hub| async {
        let anyone = hub.anonymous();
        let wrong = anyone.with_key("ca_00000000000000000000000000000000");
        for (caller, path) in [
            (&anyone.0, "/mcp"),
            (&wrong, "/mcp"),
            (&anyone.0, "/mcp/ch_x"),
            (&wrong, "/mcp/ch_x"),
        ] {
            for revision in Revision::BOTH {
                let refused = McpHost::new(caller, path, revision)
                    .ask("tools/list", json!({}))
                    .await;
                refused.refused(401, "ERR_UNAUTHORIZED");
                let challenge = refused.header("www-authenticate");
                let metadata = challenge
                    .split("resource_metadata=\"")
                    .nth(1)
                    .unwrap()
                    .trim_end_matches('"');
                let at = metadata.strip_prefix(&hub.url).unwrap();
                let document = anyone.get(at).await.json();
                assert_eq!(
                    document["resource"],
                    format!("{}{path}", hub.url),
                    "{challenge}"
                );
                assert_eq!(document["bearer_methods_supported"], json!(["header"]));
            }
        }
        let root = anyone
            .get("/.well-known/oauth-protected-resource")
            .await
            .json();
        assert_eq!(root["resource"], hub.url);
        McpHost::new(&hub.operator(), "/mcp", Revision::Stateless)
            .ask("tools/list", json!({}))
            .await
            .refused(403, "ERR_FORBIDDEN");
    }
);

memory_story!(
    a_page_of_another_origin_and_a_name_that_is_not_ours_are_turned_away,
    |hub| async {
        let alice = hub.agent("alice").await;
        let host = McpHost::new(&alice, "/mcp", Revision::Stateless);
        for (header, value) in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            // Another port of the loopback is another origin.
            ("origin", "http://localhost:6274"),
            ("origin", "http://localhost.evil.example"),
            ("host", "evil.example"),
        ] {
            let refused = host
                .clone()
                .with(header, value)
                .ask("tools/list", json!({}))
                .await;
            assert_eq!(refused.status, 403, "{header} {value}: {refused:?}");
            refused.refused(403, "ERR_ORIGIN");
        }
        for (header, value) in [("origin", hub.url.as_str()), ("host", "localhost:1")] {
            let taken = host
                .clone()
                .with(header, value)
                .ask("tools/list", json!({}))
                .await;
            assert_eq!(taken.status, 200, "{header} {value}: {taken:?}");
        }
    }
);

memory_story!(
    a_hub_with_a_public_name_is_asked_under_it,
    with(|set| set.public_url = Some("https://hub.example.com".into())),
    |hub| async {
        let alice = hub.agent("alice").await;
        let host =
            McpHost::new(&alice, "/mcp", Revision::Stateless).with("host", "hub.example.com");
        for (origin, status) in [
            ("https://hub.example.com", 200),
            ("https://hub.example.com:444", 403),
        ] {
            let answer = host
                .clone()
                .with("origin", origin)
                .ask("tools/list", json!({}))
                .await;
            assert_eq!(answer.status, status, "{origin}");
        }
    }
);

memory_story!(a_client_that_takes_any_media_type_gets_json, |hub| async {
    // The answer is always JSON, so a client need not name the media type of streams
    let alice = hub.agent("alice").await;
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for accept in ["*/*", "application/*", "application/json"] {
        let request = alice
            .request("POST", "/mcp")
            .header("accept", accept)
            .header("mcp-protocol-version", "2025-11-25");
        let answer = Answer::of(request.json(&list)).await;
        assert_eq!(answer.status, 200, "{accept}: {answer:?}");
        let tools = &answer.json()["result"]["tools"];
        assert_eq!(tools.as_array().unwrap().len(), HUB_TOOLS.len(), "{accept}");
    }
});

memory_story!(what_is_no_message_is_refused_as_json, |hub| async {
    let alice = hub.agent("alice").await;
    let post = async |body: String, accept: &str| {
        let request = alice
            .request("POST", "/mcp")
            .header("accept", accept)
            .header("content-type", "application/json");
        Answer::of(request.body(body)).await
    };
    let both = "application/json, text/event-stream";
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        ("[]", -32600),
        ("{}", -32600),
        ("7", -32600),
    ] {
        let answer = post(body.to_owned(), both).await;
        assert_eq!(
            (answer.status, answer.json()["error"]["code"].as_i64()),
            (400, Some(code)),
            "{body}: {answer:?}"
        );
    }
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    assert_eq!(post(list.clone(), "text/html").await.status, 406);
    // The answer is always JSON, so a client need not accept event streams.
    for accept in ["application/json", "application/*", "*/*"] {
        let answer = post(list.clone(), accept).await;
        assert_eq!(answer.status, 200, "{accept}: {answer:?}");
    }
    post("x".repeat(256 * 1024 + 1), both)
        .await
        .refused(413, "ERR_TOO_LARGE");
    let got = alice.get("/mcp").await;
    got.refused(405, "ERR_METHOD_NOT_ALLOWED");
    assert_eq!(got.header("allow"), "POST");
    let old = alice
        .request("POST", "/mcp")
        .header("accept", both)
        .header("mcp-protocol-version", "1999-01-01");
    let old = Answer::of(old.header("content-type", "application/json").body(list)).await;
    assert_eq!(old.status, 400, "{old:?}");
    assert!(
        old.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("1999-01-01"),
        "{old:?}"
    );

    let host = McpHost::new(&alice, "/mcp", Revision::Handshake);
    assert_eq!(
        host.error_code(
            "tools/call",
            json!({"name": "no_such_tool", "arguments": {}})
        )
        .await,
        -32602
    );
    assert_eq!(host.error_code("no/such/method", json!({})).await, -32601);
});

memory_story!(a_key_that_was_rotated_calls_nothing_any_more, |hub| async {
    let alice = hub.agent("alice").await;
    let host = McpHost::of(&alice).await;
    host.call("chorus_inbox", json!({})).await.data();
    alice
        .post(
            "/register",
            &crate::support::actors::registration(&alice.id),
        )
        .await
        .data(200);
    host.ask(
        "tools/call",
        json!({"name": "chorus_inbox", "arguments": {}}),
    )
    .await
    .refused(401, "ERR_UNAUTHORIZED");
});
