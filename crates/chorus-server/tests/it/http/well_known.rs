//! Public documents: the discovery document, the contract, the skill, health and metrics.

use crate::support::examples::example;
use serde_json::json;

const ROUTES: [(&str, &str); 27] = [
    ("post", "/register"),
    ("post", "/agents"),
    ("get", "/agents"),
    ("get", "/agents/{id}"),
    ("delete", "/agents/{id}"),
    ("get", "/discover"),
    ("get", "/invite/{id}"),
    ("post", "/messages"),
    ("get", "/messages/{trace_id}"),
    ("get", "/agent/inbox"),
    ("post", "/agent/session"),
    ("get", "/agent/messages"),
    ("post", "/agent/messages/{trace_id}/response"),
    ("post", "/agent/messages/{trace_id}/shown"),
    ("get", "/skill"),
    ("get", "/skill/{lang}"),
    ("get", "/.well-known/chorus.json"),
    ("post", "/invites"),
    ("get", "/invites"),
    ("delete", "/invites/{id}"),
    ("get", "/health"),
    ("get", "/ready"),
    ("get", "/metrics"),
    ("get", "/activity"),
    ("get", "/events"),
    ("get", "/openapi.json"),
    ("get", "/"),
];

story!(
    the_discovery_document_is_bare_and_starts_as_printed,
    with(|set| set.server_name = "Example Chorus Hub".into()),
    |hub| async {
        // TRN-49, TRN-50, TRN-63, R-13, R-14, lesson 7
        let answer = hub.anonymous().get("/.well-known/chorus.json").await;
        assert_eq!(answer.status, 200);
        assert!(
            answer
                .header("content-type")
                .starts_with("application/json")
        );
        let document = answer.json();
        let printed = example("transport-profile/8-discovery.json");
        assert_eq!(document["chorus_version"], printed["chorus_version"]);
        assert_eq!(document["server_name"], printed["server_name"]);
        for (key, path) in printed["endpoints"].as_object().unwrap() {
            assert_eq!(&document["endpoints"][key], path);
        }
        let places: Vec<_> = ["chorus_version", "server_name", "endpoints", "capabilities"]
            .iter()
            .map(|key| answer.text.find(&format!("\"{key}\"")).expect("each key"))
            .collect();
        assert!(places.is_sorted(), "printed keys first: {}", answer.text);
        assert!(document["capabilities"].is_object() || document["capabilities"].is_array());
        assert!(document["server_status"].is_string() && document.get("retention").is_some());
        for key in ["max_agents", "max_message_bytes", "rate_limit_per_minute"] {
            assert!(document["limits"].get(key).is_some(), "{key}: {document}");
        }
    }
);

story!(the_document_leads_to_every_place, |hub| async {
    // TRN-51, TRN-63: a client that follows it needs no other knowledge
    let document = hub.anonymous().get("/.well-known/chorus.json").await.json();
    let listed: Vec<&str> = document["endpoints"]
        .as_object()
        .unwrap()
        .values()
        .filter_map(|path| path.as_str())
        .collect();
    for path in [
        "/register",
        "/messages",
        "/agent/inbox",
        "/agent/messages",
        "/agent/session",
        "/discover",
        "/health",
    ] {
        assert!(listed.contains(&path), "{path} is not in {listed:?}");
    }
});

story!(the_contract_has_every_route, |hub| async {
    // OpenAPI 3.1 from the code
    let document = hub.anonymous().get("/openapi.json").await.json();
    assert!(
        document["openapi"].as_str().unwrap().starts_with("3.1"),
        "{}",
        document["openapi"]
    );
    for (method, path) in ROUTES {
        assert!(
            document["paths"][path][method].is_object(),
            "{method} {path}"
        );
        assert!(
            document["paths"][path][method]["responses"]
                .as_object()
                .is_some_and(|r| !r.is_empty()),
            "{method} {path}"
        );
    }
});

story!(every_reference_in_the_contract_resolves, |hub| async {
    let document = hub.anonymous().get("/openapi.json").await.json();
    let text = document.to_string();
    let mut references = 0;
    for piece in text.split("\"$ref\":\"#").skip(1) {
        let pointer = &piece[..piece.find('"').unwrap()];
        assert!(
            document.pointer(pointer).is_some(),
            "{pointer} leads nowhere"
        );
        references += 1;
    }
    assert!(references > 10);
});

story!(
    the_skill_is_markdown_for_agents_and_a_page_for_browsers,
    |hub| async {
        // lesson 11, R-32
        let text = hub.anonymous().get("/skill").await;
        assert_eq!(text.status, 200);
        assert!(
            text.header("content-type").starts_with("text/markdown"),
            "{}",
            text.header("content-type")
        );
        assert!(text.text.contains("sender_culture") && text.text.contains("INVALID_ENVELOPE"));
        let page = hub.anonymous().get_as("text/html", "/skill").await;
        assert!(page.header("content-type").starts_with("text/html"));
        for lang in ["en", "zh-CN"] {
            assert_eq!(
                hub.anonymous().get(&format!("/skill/{lang}")).await.status,
                200,
                "{lang}"
            );
        }
        hub.anonymous()
            .get("/skill/xx")
            .await
            .refused(404, "ERR_NOT_FOUND");
    }
);

story!(health_counts_what_happens, |hub| async {
    // TRN-37, lesson 6
    let webhook =
        crate::support::actors::Webhook::replying(crate::support::actors::Reply::ok()).await;
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    hub.agent_with_webhook("carol", &webhook.url()).await;
    hub.agent_with_webhook("dave", "http://127.0.0.1:9/").await;
    let _inbox = alice.inbox().await;
    alice.send_expecting("bob", "x", "queued").await;
    bob.send_expecting("alice", "x", "delivered_sse").await;
    alice.send_expecting("carol", "x", "delivered").await;
    alice.send_expecting("dave", "x", "failed").await;
    hub.advance(std::time::Duration::from_secs(7));
    let data = hub.anonymous().get("/health").await.data(200);
    let counts = json!({"agents_registered": 4, "messages_delivered": 2, "messages_queued": 1, "messages_failed": 1,
        "inbox_connections": 1, "messages_stored": 4, "uptime_seconds": 7, "invite_gating": false});
    for (key, count) in counts.as_object().unwrap() {
        assert_eq!(&data[key], count, "{key}: {data}");
    }
    assert!(data["status"].is_string() && data["version"].is_string());
});

story!(ready_and_metrics_answer, |hub| async {
    assert_eq!(hub.anonymous().get("/ready").await.status, 200);
    hub.agent("alice").await;
    let metrics = hub.anonymous().get("/metrics").await;
    assert!(
        metrics.status == 200 && metrics.header("content-type").starts_with("text/plain"),
        "{metrics:?}"
    );
    assert!(metrics.text.contains("# TYPE chorus_"), "{}", metrics.text);
});

story!(
    the_retention_of_frames_says_who_reads_them_and_when_they_go,
    |hub| async {
        // FRM-112
        let document = hub.anonymous().get("/.well-known/chorus.json").await.json();
        let frames = &document["retention"]["frames"];
        assert_eq!(frames["seconds"], 300);
        assert_eq!(frames["frames"], 10_000);
        assert_eq!(frames["bytes"], 16 * 1024 * 1024);
        // Who reads them and with what; what ends them earlier than time does, and on which hubs.
        for (told, words) in [
            ("access", ["sessions of the handle", "its key"].as_slice()),
            (
                "deletion",
                ["after that time", "a hub alone", "restarts", "unregisters"].as_slice(),
            ),
        ] {
            let text = frames[told].as_str().unwrap();
            for word in words {
                assert!(text.contains(word), "{told} lacks {word:?}: {text}");
            }
        }
    }
);

story!(
    the_files_of_the_skill_are_served_and_their_links_resolve,
    |hub| async {
        // SKL-34, R-105
        for name in ["SKILL.md", "SKILL.zh-CN.md", "TRANSPORT.md", "en", "zh-CN"] {
            let file = hub
                .anonymous()
                .get_as("text/markdown", &format!("/skill/{name}"))
                .await;
            assert_eq!(file.status, 200, "{name}");
            for link in file.text.split(&hub.url).skip(1) {
                let end = link
                    .find(|c: char| c.is_whitespace() || "`?\",，。".contains(c))
                    .unwrap();
                let path = link[..end].trim_end_matches('.');
                if path.starts_with("/skill") || path.starts_with("/schemas") {
                    let linked = hub.anonymous().get_as("*/*", path).await;
                    assert_eq!(linked.status, 200, "{name} links {path}");
                }
            }
        }
        let missing = hub.anonymous().get("/skill/PROTOCOL.md").await;
        missing.refused(404, "ERR_NOT_FOUND");
    }
);
