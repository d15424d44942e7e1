//! Refused submissions: bad bodies and scopes, the order of checks, and the count of refusals by code.

use super::refusals::{spoiled, untouched};
use serde_json::{Value, json};

memory_story!(a_body_that_is_no_submission_is_refused, |hub| async {
    // R-41, R-53, FRM-01
    let alice = hub.agent("alice").await;
    let frame = alice.advisory("spoiled").to_string();
    let deep = format!(r#"{{"frame":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    untouched(&hub, &alice, async || {
        let not_json = [
            String::new(),
            "{".into(),
            "[]".into(),
            "null".into(),
            "frame".into(),
            deep,
            format!(r#"{{"frame":{frame}}} x"#),
            format!(r#"{{"frame":{frame},"frame":{frame}}}"#),
            format!(r#"{{"scope":"~alice","scope":"~alice","frame":{frame}}}"#),
            format!(
                r#"{{"frame":{}}}"#,
                frame.replacen('{', r#"{"kind":"agent_advisory","#, 1)
            ),
        ];
        for body in not_json {
            alice
                .post_text("/frames", body)
                .await
                .frame_refused(400, "json-invalid", None);
        }
        alice
            .post_text("/frames", b"{\"frame\":\"\xff\"}".to_vec())
            .await
            .frame_refused(400, "json-invalid", None);
        for (body, code, field) in [
            ("{}".to_owned(), "field-missing", "frame"),
            (r#"{"scope":"~alice"}"#.to_owned(), "field-missing", "frame"),
            (r#"{"frame":7}"#.to_owned(), "field-invalid", "frame"),
            (r#"{"frame":null}"#.to_owned(), "field-invalid", "frame"),
            (
                format!(r#"{{"frame":{frame},"to":"~alice"}}"#),
                "field-unknown",
                "to",
            ),
            (
                format!(r#"{{"frame":{frame},"scope":null}}"#),
                "field-invalid",
                "scope",
            ),
            (
                format!(r#"{{"frame":{frame},"scope":["~alice"]}}"#),
                "field-invalid",
                "scope",
            ),
        ] {
            alice
                .post_text("/frames", body)
                .await
                .frame_refused(400, code, Some(field));
        }
    })
    .await;
});

memory_story!(
    a_scope_outside_the_grammar_is_refused_by_name,
    |hub| async {
        // FRM-48…56, R-53
        let alice = hub.agent("alice").await;
        untouched(&hub, &alice, async || {
            for scope in [
                " ",
                "alice",
                "~Alice",
                "~alice/",
                "~alice/**",
                "~alice/cc-",
                "~alice/@s1",
                "~alice/cc-editor@",
                "~alice/cc-editor@s1*",
                "~alice/a/b",
                "~alice, ~bob",
                "*",
                "org:",
                "org:acme",
                "org:acme/members",
                "org:acme/members/",
                "org:acme/members/Lead/*",
                "org:acme/members/lead",
                "accord:acme",
                "accord:acme/grant:",
                "accord:acme/grant:*",
                "team:acme/members/*",
                "~alice/cc editor@s1",
            ] {
                let answer = alice.submit(scope, &alice.advisory("spoiled")).await;
                assert_eq!(
                    answer.json()["code"],
                    "field-invalid",
                    "{scope}: {answer:?}"
                );
                answer.frame_refused(400, "field-invalid", Some("scope"));
            }
            let empty = json!({"scope": "", "frame": alice.advisory("spoiled")});
            alice
                .post("/frames", &empty)
                .await
                .frame_refused(400, "field-invalid", Some("scope"));
        })
        .await;
    }
);

memory_story!(the_first_fault_in_the_fixed_order_wins, |hub| async {
    // R-44: syntax, version, kind, unknown, missing, invalid, payload, identity, scope
    let alice = hub.agent("alice").await;
    let mut frame = alice.advisory("spoiled");
    let set = |frame: &mut Value, place: &str, value: Value| frame[place] = value;
    let refused = async |frame: &Value, code: &str, field: &str| {
        let status = if code.starts_with("sender") || code.starts_with("scope") {
            403
        } else {
            400
        };
        alice
            .submit("~bob", frame)
            .await
            .frame_refused(status, code, Some(field));
    };
    untouched(&hub, &alice, async || {
        refused(&frame, "scope-unauthorised", "scope").await;
        set(&mut frame, "acted_by", json!("~bob"));
        refused(&frame, "sender-identity-mismatch", "acted_by").await;
        set(&mut frame, "sender_handle", json!("~bob"));
        refused(&frame, "sender-identity-mismatch", "sender_handle").await;
        set(&mut frame, "payload", json!({"advisory_text": ""}));
        refused(&frame, "field-invalid", "payload.advisory_text").await;
        set(&mut frame, "payload", json!({"advisory_text": "", "x": 1}));
        refused(&frame, "field-unknown", "payload.x").await;
        set(&mut frame, "provenance_basis", json!(""));
        refused(&frame, "field-invalid", "provenance_basis").await;
        frame.as_object_mut().unwrap().remove("drafted_with");
        refused(&frame, "field-missing", "drafted_with").await;
        set(&mut frame, "x", json!(1));
        refused(&frame, "field-unknown", "x").await;
        set(&mut frame, "kind", json!("gossip"));
        refused(&frame, "kind-unknown", "kind").await;
        set(&mut frame, "envelope_version", json!("0.9"));
        refused(&frame, "envelope-version-unsupported", "envelope_version").await;
        let broken = json!({"scope": "~bob", "frame": frame})
            .to_string()
            .replacen(':', ";", 1);
        alice
            .post_text("/frames", broken)
            .await
            .frame_refused(400, "json-invalid", None);
        let stranger = hub.anonymous().post_text("/frames", "{").await;
        stranger.frame_refused(401, "unauthenticated", None);
    })
    .await;
});

memory_story!(a_refusal_is_counted_by_its_code, |hub| async {
    // "no trace in ring, count or metric but the rejection counter"
    let alice = hub.agent("alice").await;
    let refusals = async || -> u64 {
        let text = hub.anonymous().get("/metrics").await.text;
        let line = text
            .lines()
            .find_map(|l| l.strip_prefix(r#"chorus_frames_rejected_total{code="kind-unknown"} "#));
        line.map_or(0, |count| count.parse().unwrap())
    };
    let before = refusals().await;
    let frame = spoiled(&alice.advisory("spoiled"), "kind", Some(json!("gossip")));
    alice
        .submit("", &frame)
        .await
        .frame_refused(400, "kind-unknown", Some("kind"));
    // Other stories may be told in this process at the same time.
    assert!(refusals().await > before);
});
