//! Invalid requests on frame paths: every refusal has the frame error format (FRM-83, R-13, failure 26).

use crate::support::actors::Answer;
use serde_json::{Value, json};

story!(
    an_unknown_path_is_a_404_in_the_form_of_frames,
    |hub| async {
        let alice = hub.agent("alice").await;
        for path in [
            "/frames/1",
            "/frames/",
            "/handles",
            "/handles/~alice",
            "/handles/~alice/nothing",
            "/handles/~alice/stream/more",
            "/handles/~alice/grants/~bob/more",
            "/orgs/~acme",
            "/orgs/~acme/nothing",
            "/orgs/~acme/members/~bob/refuse",
        ] {
            for who in [&*alice, &*hub.anonymous()] {
                let answer = who.get(path).await;
                assert_eq!(answer.status, 404, "{path}: {answer:?}");
                answer.frame_refused(404, "not-found", None);
            }
        }
    }
);

story!(a_wrong_method_is_a_405_in_the_form_of_frames, |hub| async {
    let alice = hub.agent("alice").await;
    for (method, path) in [
        ("GET", "/frames"),
        ("PUT", "/frames"),
        ("DELETE", "/frames"),
        ("POST", "/handles/~alice/stream"),
        ("DELETE", "/handles/~alice/roster"),
        ("POST", "/handles/~alice/grants/~bob"),
        ("POST", "/handles/~alice/grants"),
        ("DELETE", "/orgs"),
        ("POST", "/orgs/~acme/members"),
        ("GET", "/orgs/~acme/members/~bob/accept"),
        ("PUT", "/orgs/~acme/accords"),
    ] {
        let answer = Answer::of(alice.request(method, path)).await;
        assert_eq!(answer.status, 405, "{method} {path}: {answer:?}");
        answer.frame_refused(405, "method-not-allowed", None);
        assert!(!answer.header("allow").is_empty(), "{method} {path}");
    }
});

memory_story!(other_paths_keep_their_own_form, |hub| async {
    // only what is under frames, handles and orgs is bare
    for path in [
        "/framesx",
        "/frame",
        "/handlesx/y",
        "/organisations",
        "/nothing",
    ] {
        hub.anonymous()
            .get(path)
            .await
            .refused(404, "ERR_NOT_FOUND");
    }
});

memory_story!(
    a_badly_encoded_query_is_refused_in_the_form_of_frames,
    |hub| async {
        let alice = hub.agent("alice").await;
        for query in ["?filter=%zz", "?instrument=%ff", "?session=a&session=b"] {
            let answer = alice.try_open_session(query).await;
            assert_eq!(
                (answer.status, &answer.json()["code"]),
                (400, &json!("field-invalid")),
                "{query}: {answer:?}"
            );
            answer.has_frame_form();
        }
    }
);

memory_story!(bad_json_on_any_frame_path_is_json_invalid, |hub| async {
    //
    let alice = hub.agent("alice").await;
    for path in ["/frames", "/orgs"] {
        alice
            .post_text(path, "{")
            .await
            .frame_refused(400, "json-invalid", None);
    }
});

memory_story!(a_body_announced_too_large_is_refused_at_once, |hub| async {
    // before it has come
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let alice = hub.agent("alice").await;
    let mut socket = tokio::net::TcpStream::connect(hub.addr()).await.unwrap();
    let head = format!(
        "POST /frames HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-length: 99999999\r\n\r\n{{",
        alice.key
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let reading = async {
        while !String::from_utf8_lossy(&answer).contains("frame-too-large") {
            assert!(
                socket.read_buf(&mut answer).await.unwrap() > 0,
                "{}",
                String::from_utf8_lossy(&answer)
            );
        }
    };
    crate::support::hub::within(crate::support::actors::STEP_TIMEOUT, reading)
        .await
        .expect("an answer at once");
    assert!(
        answer.starts_with(b"HTTP/1.1 413"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
});

memory_story!(a_head_answers_like_a_get, |hub| async {
    let alice = hub.agent("alice").await;
    for path in [
        "/handles/~alice/stream",
        "/handles/~alice/roster",
        "/.well-known/mcp.json",
    ] {
        let answer = Answer::of(alice.request("HEAD", path)).await;
        assert_eq!(
            (answer.status, answer.text.as_str()),
            (200, ""),
            "{path}: {answer:?}"
        );
    }
    assert!(alice.roster().await.is_empty(), "a HEAD opens no session");
});

story!(
    a_stranger_learns_everything_about_frames_from_the_hub,
    |hub| async {
        // FRM-21, FRM-112, TRN-63: kinds, payload shapes, scopes, axes, limits, retention, routes
        let document = hub.anonymous().get("/.well-known/chorus.json").await.json();
        let listed: Vec<&str> = document["endpoints"]
            .as_object()
            .unwrap()
            .values()
            .filter_map(Value::as_str)
            .collect();
        for path in [
            "/frames",
            "/handles/{handle}/stream",
            "/handles/{handle}/roster",
            "/orgs",
            "/.well-known/mcp.json",
        ] {
            assert!(listed.contains(&path), "{path} is not in {listed:?}");
        }
        let frames = &document["capabilities"]["frames"];
        let ours = chorus_wire::frame::describe_capabilities();
        for key in [
            "envelope_version",
            "kinds",
            "scopes",
            "filter_axes",
            "payloads",
            "limits",
        ] {
            assert_eq!(frames[key], ours[key], "{key}: {document}");
        }
        assert_eq!(frames["kinds"].as_array().unwrap().len(), 15);
        for kind in [
            "agent_lock_release",
            "agent_lease_extend",
            "agent_response",
            "peer_diagnostic_response",
        ] {
            assert!(frames["payloads"][kind]["properties"].is_object(), "{kind}");
        }
        let retention = document["retention"].to_string();
        assert!(
            retention.contains("300") && retention.contains("10000"),
            "{retention}"
        );
    }
);

memory_story!(the_contract_has_the_routes_of_frames, |hub| async {
    let document = hub.anonymous().get("/openapi.json").await.json();
    for (method, path) in [
        ("post", "/frames"),
        ("get", "/handles/{handle}/stream"),
        ("get", "/handles/{handle}/roster"),
        ("get", "/handles/{handle}/grants"),
        ("put", "/handles/{handle}/grants/{grantee}"),
        ("delete", "/handles/{handle}/grants/{grantee}"),
        ("post", "/orgs"),
        ("get", "/orgs/{org}/members"),
        ("get", "/.well-known/mcp.json"),
    ] {
        let route = &document["paths"][path][method];
        assert!(
            route["responses"]
                .as_object()
                .is_some_and(|r| !r.is_empty()),
            "{method} {path}"
        );
    }
});

memory_story!(
    a_runtime_finds_the_hub_by_the_well_known_document,
    |hub| async {
        // FRM-113: the hub's part
        let answer = hub.anonymous().get("/.well-known/mcp.json").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(
            answer
                .header("content-type")
                .starts_with("application/json"),
            "{answer:?}"
        );
        let document = answer.json();
        let text = document.to_string();
        assert!(
            text.contains(&hub.url) && text.contains("/frames"),
            "{text}"
        );
        assert_eq!(document["mcp"]["url"], format!("{}/mcp", hub.url));
        let sdk = hub.anonymous().get("/.well-known/alter.json").await;
        assert_eq!(sdk.json(), document, "the name that SDKs ask for last");
    }
);
