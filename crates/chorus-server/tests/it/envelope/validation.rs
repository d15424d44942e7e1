//! Invalid sends: each is refused with the name of the field, and nothing of it is stored or delivered.

use serde_json::{Value, json};

/// `change` made to a good send; the refusal must name `field`.
fn wrong() -> Vec<(&'static str, Value)> {
    let mut cases = wrong_values();
    for field in [
        "chorus_version",
        "sender_id",
        "original_text",
        "sender_culture",
    ] {
        for value in [
            json!("absent"),
            json!(null),
            json!(4),
            json!(["en"]),
            json!({"a": 1}),
            json!(""),
        ] {
            cases.push((field, json!({ field: value })));
        }
    }
    // ENV-09, ENV-10, R-20: nothing else has a place in an envelope.
    for field in [
        "receiver_id",
        "personality",
        "speaking_style",
        "timestamp",
        "Original_text",
    ] {
        cases.push((field, json!({ field: "x" })));
    }
    cases
}

/// Strings and numbers of the right type that break a rule.
fn wrong_values() -> Vec<(&'static str, Value)> {
    let long = |letter: &str, count: usize| json!(letter.repeat(count));
    let fields: [(&'static str, Vec<Value>); 7] = [
        ("chorus_version", texts(&["0.3", "0.4.0", "1.0", " 0.4"])),
        (
            "sender_id",
            texts(&[
                "alice",
                "~alice",
                "alice@",
                "@chorus",
                "al ice@chorus",
                "a@b@c",
                "älice@chorus",
            ]),
        ),
        (
            "sender_culture",
            texts(&[
                "e",
                "english",
                "en_US",
                "en-",
                "-en",
                "zh CN",
                "1n",
                "x-private",
                "en-a",
            ]),
        ),
        ("original_text", vec![long("é", 10_001)]),
        (
            "cultural_context",
            vec![
                long("x", 9),
                long("é", 9),
                long("x", 501),
                json!(null),
                json!(5),
            ],
        ),
        (
            "conversation_id",
            vec![long("x", 65), json!(null), json!(5)],
        ),
        (
            "turn_number",
            vec![
                json!(0),
                json!(-1),
                json!(1.5),
                json!("1"),
                json!(null),
                json!(true),
                json!(1e300),
            ],
        ),
    ];
    let with = |(field, values): (&'static str, Vec<Value>)| {
        values
            .into_iter()
            .map(move |value| (field, json!({ field: value })))
    };
    fields.into_iter().flat_map(with).collect()
}

fn texts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!(text)).collect()
}

story!(
    a_wrong_envelope_is_refused_by_name_and_leaves_no_trace,
    |hub| async {
        // ENV-02…08, ENV-12, ENV-23, TRN-22, R-20, R-21, R-38
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let mut inbox = bob.inbox().await;
        for (field, change) in wrong() {
            let mut body = alice.message(&bob.id, "hello");
            for (key, value) in change.as_object().unwrap() {
                let envelope = body["envelope"].as_object_mut().unwrap();
                if value == "absent" {
                    envelope.remove(key)
                } else {
                    envelope.insert(key.clone(), value.clone())
                };
            }
            let message = alice
                .post("/messages", &body)
                .await
                .refused(400, "ERR_VALIDATION");
            assert!(
                message.contains(field),
                "{message:?} should name {field} for {change}"
            );
        }
        alice
            .send_expecting(&bob.id, "marker", "delivered_sse")
            .await;
        assert_eq!(inbox.texts(1).await, ["marker"]);
        assert_eq!(bob.history("").await.len(), 1);
    }
);

story!(every_bound_is_reached_exactly, |hub| async {
    // ENV-07, ENV-08, ENV-23, R-20, R-21: lengths are code points, culture in any letter case
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let good = [
        json!({"original_text": "x"}),
        json!({"original_text": "🎶".repeat(10_000)}),
        json!({"cultural_context": "🎶".repeat(10)}),
        json!({"cultural_context": "é".repeat(500)}),
        json!({"conversation_id": "é".repeat(64)}),
        json!({"conversation_id": ""}),
        json!({"turn_number": 1}),
        json!({"turn_number": 9_007_199_254_740_991_u64}),
        json!({"sender_culture": "EN"}),
        json!({"sender_culture": "zh-Hant-TW"}),
        json!({"sender_culture": "yue"}),
        json!({"sender_culture": "de-CH-1996-x-me"}),
    ];
    for change in &good {
        let mut body = alice.message(&bob.id, "hello");
        body["envelope"]
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        alice.post("/messages", &body).await.data(202);
    }
    let kept = bob.history("").await;
    assert_eq!(kept.len(), good.len());
    for (row, change) in kept.iter().zip(&good) {
        for (key, value) in change.as_object().unwrap() {
            assert_eq!(&row["envelope"][key], value);
        }
    }
});

story!(
    the_request_around_the_envelope_is_checked_too,
    |hub| async {
        // ENV-01, TRN-14
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let good = alice.envelope("hello");
        let mut flat = good.clone();
        flat["receiver_id"] = json!(bob.id);
        let cases = [
            (flat, ""),
            (json!({"receiver_id": bob.id}), "envelope"),
            (json!({"envelope": good}), "receiver_id"),
            (json!({"receiver_id": 5, "envelope": good}), "receiver_id"),
            (
                json!({"receiver_id": null, "envelope": good}),
                "receiver_id",
            ),
            (json!({"receiver_id": "", "envelope": good}), "receiver_id"),
            (
                json!({"receiver_id": "a b", "envelope": good}),
                "receiver_id",
            ),
            (json!({"receiver_id": bob.id, "envelope": null}), "envelope"),
            (
                json!({"receiver_id": bob.id, "envelope": "text"}),
                "envelope",
            ),
            (
                json!({"receiver_id": bob.id, "envelope": [good]}),
                "envelope",
            ),
            (
                json!({"receiver_id": bob.id, "envelope": good, "stream": "yes"}),
                "stream",
            ),
            (
                json!({"receiver_id": bob.id, "envelope": good, "sender_id": "alice@chorus"}),
                "sender_id",
            ),
            (json!([]), ""),
            (json!("text"), ""),
            (json!(null), ""),
        ];
        for (body, field) in &cases {
            let message = alice
                .post("/messages", body)
                .await
                .refused(400, "ERR_VALIDATION");
            assert!(
                message.contains(field),
                "{message:?} should name {field} for {body}"
            );
        }
        assert!(bob.history("").await.is_empty());
    }
);

story!(malformed_json_is_a_plain_400, |hub| async {
    // "Bad input": duplicate keys, deep nesting, invalid UTF-8, cut bodies
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let good = alice.message(&bob.id, "hello").to_string();
    let twice = good.replacen(
        "\"sender_culture\":\"en\"",
        "\"sender_culture\":\"en\",\"sender_culture\":\"en\"",
        1,
    );
    let receiver = good.replacen('{', "{\"receiver_id\":\"carol@chorus\",", 1);
    let deep = format!(
        "{{\"receiver_id\":\"bob\",\"envelope\":{}1{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let objects = format!(
        "{{\"receiver_id\":\"bob\",\"envelope\":{}1{}}}",
        "{\"a\":".repeat(5_000),
        "}".repeat(5_000)
    );
    let surrogate = good.replace("hello", "\\ud800");
    let number = good.replace("\"hello\"", "1e999");
    assert!(twice != good && surrogate != good && number != good);
    let mut bytes: Vec<Vec<u8>> = [twice, receiver, deep, objects, surrogate, number]
        .map(String::into_bytes)
        .to_vec();
    bytes.extend(
        [
            &b""[..],
            b"{",
            b"nonsense",
            b"{}{}",
            b"\xff\xfe",
            b"{\"receiver_id\":\"\xc3\x28\"}",
        ]
        .map(<[u8]>::to_vec),
    );
    bytes.push(good.as_bytes()[..good.len() - 1].to_vec());
    bytes.push(format!("{good},").into_bytes());
    bytes.push(good.replace("hello", "tab\there").into_bytes());
    for body in bytes {
        let shown = String::from_utf8_lossy(&body[..body.len().min(120)]).into_owned();
        for path in ["/messages", "/register"] {
            let answer = alice.post_text(path, body.clone()).await;
            assert_eq!(answer.status, 400, "{path} {shown}: {answer:?}");
            answer.refused(400, "ERR_VALIDATION");
        }
    }
    assert!(bob.history("").await.is_empty());
});
