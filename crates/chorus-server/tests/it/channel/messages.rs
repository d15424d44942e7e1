//! Channel messages: the same line in the answer, on the stream and in the history.

use crate::support::actors::channel::{
    add_agent, add_remote, channel_history, create_channel, message_contents, open_channel_stream,
    post_message,
};
use crate::support::actors::{Agent, Answer, Stream};
use crate::support::hub::eventually;
use chorus_wire::limits;
use serde_json::{Value, json};
use std::time::Duration;

story!(
    a_line_is_the_same_in_the_answer_on_the_stream_and_in_the_history,
    |hub| async {
        // CHN-12…14
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let path = create_channel(&alice, "ops").await;
        add_agent(&alice, &path, &bob).await;
        let (mut hers, mut his) = (
            open_channel_stream(&alice, &path).await,
            open_channel_stream(&bob, &path).await,
        );
        let parts = json!([{"text": "a table"}, {"data": {"rows": [1, 2.5]}, "mediaType": "application/json"},
        {"url": "https://a.example/x.png", "filename": "x.png", "metadata": {"k": 1}}, {"raw": "aGVsbG8="}]);
        let body = json!({"content": "@bob look\n**here** — 你好", "parts": parts});
        let line = alice
            .post(&format!("{path}/messages"), &body)
            .await
            .data(201);
        assert!(line["id"].as_str().unwrap().starts_with("msg_"), "{line}");
        assert_eq!(
            (&line["type"], &line["content"], &line["parts"]),
            (&json!("message"), &body["content"], &parts)
        );
        assert_eq!(
            (&line["sender"], &line["sender_kind"], &line["turn"]),
            (&json!("alice"), &json!("person"), &json!(0))
        );
        assert_eq!(line["mentions"], json!(["bob"]));
        for stream in [&mut hers, &mut his] {
            let event = stream.next("message").await;
            assert_eq!(
                (&event.data, event.cursor()),
                (&line, line["cursor"].as_u64().unwrap())
            );
        }
        assert_eq!(channel_history(&bob, &path, "").await.last(), Some(&line));
    }
);

story!(
    the_owners_word_is_a_persons_and_a_members_is_an_agents,
    |hub| async {
        //
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let path = create_channel(&alice, "ops").await;
        add_agent(&alice, &path, &bob).await;
        for (line, kind, turn) in [
            (post_message(&alice, &path, "one").await, "person", 0),
            (post_message(&bob, &path, "two").await, "agent", 1),
            (
                post_message(&hub.operator(), &path, "three").await,
                "person",
                0,
            ),
        ] {
            assert_eq!(
                (&line["sender_kind"], &line["turn"]),
                (&json!(kind), &json!(turn)),
                "{line}"
            );
        }
    }
);

story!(only_members_are_called_and_each_once, |hub| async {
    //
    let alice = hub.agent("alice").await;
    let path = create_channel(&alice, "ops").await;
    for name in ["timber", "oak-2", "小明"] {
        add_remote(&alice, &path, name, "https://agent.example.com/inbox/x")
            .await
            .data(201);
    }
    for (content, called) in [
        (
            "@Timber, ask @oak-2. And @timber!",
            json!(["timber", "oak-2"]),
        ),
        ("@小明，你好", json!(["小明"])),
        ("@absent, me@timber", Value::Null),
    ] {
        let line = post_message(&alice, &path, content).await;
        assert_eq!(
            line.get("mentions").unwrap_or(&Value::Null),
            &called,
            "{content}"
        );
    }
});

story!(what_is_wrong_with_a_message_is_named, |hub| async {
    let alice = hub.agent("alice").await;
    let path = format!("{}/messages", create_channel(&alice, "ops").await);
    for (body, field) in [
        (json!({}), "content"),
        (json!({"content": ""}), "content"),
        (json!({"content": 1}), "content"),
        (json!({"content": "a\u{0}"}), "content"),
        (json!({"content": "x", "to": "bob"}), "to"),
        (json!({"content": "x", "parts": []}), "parts"),
        (json!({"content": "x", "parts": {}}), "parts"),
        (json!({"content": "x", "parts": [{}]}), "parts[0]"),
        (
            json!({"content": "x", "parts": [{"text": "a", "url": "https://a.example"}]}),
            "parts[0]",
        ),
        (
            json!({"content": "x", "parts": [{"text": "a"}, {"kind": "text", "text": "a"}]}),
            "parts[1].kind",
        ),
        (
            json!({"content": "x", "parts": [{"url": "javascript:alert(1)"}]}),
            "parts[0].url",
        ),
        (
            json!({"content": "x", "parts": [{"raw": "not base64!"}]}),
            "parts[0].raw",
        ),
        (
            json!({"content": "x", "parts": [{"text": "a", "metadata": 1}]}),
            "parts[0].metadata",
        ),
        (
            json!({"content": "x", "parts": vec![json!({"text": "a"}); limits::PARTS_PER_MESSAGE + 1]}),
            "parts",
        ),
    ] {
        let said = alice
            .post(&path, &body)
            .await
            .refused(400, "ERR_VALIDATION");
        assert!(said.contains(field), "{body}: {said}");
    }
    let large = json!({"content": "x".repeat(limits::CHANNEL_MESSAGE_CHARS)});
    alice
        .post(&path, &large)
        .await
        .refused(413, "ERR_TOO_LARGE");
    let most = json!({"content": "x".repeat(limits::CHANNEL_MESSAGE_CHARS - 2)});
    alice.post(&path, &most).await.data(201);
    let only_parts = json!({"content": "", "parts": [{"text": "a"}]});
    alice.post(&path, &only_parts).await.data(201);
});

async fn post_once(by: &Agent, room: &str, key: &str, content: &str) -> Answer {
    let request = by
        .request("POST", &format!("{room}/messages"))
        .header("idempotency-key", key);
    Answer::of(request.json(&json!({"content": content}))).await
}

story!(one_key_is_one_line_also_after_a_restart, |hub| async {
    //
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let (path, other) = (
        create_channel(&alice, "ops").await,
        create_channel(&alice, "other").await,
    );
    add_agent(&alice, &path, &bob).await;
    let sent = (0..6).map(|_| post_once(&alice, &path, "k", "once"));
    let lines: Vec<Value> = futures_util::future::join_all(sent)
        .await
        .iter()
        .map(|a| a.data(201))
        .collect();
    assert!(lines.iter().all(|line| line == &lines[0]), "{lines:?}");
    post_once(&alice, &path, "k", "another")
        .await
        .refused(409, "ERR_IDEMPOTENCY_CONFLICT");
    hub.restart().await;
    let (alice, bob) = (hub.reconnect(&alice), hub.reconnect(&bob));
    assert_eq!(
        post_once(&alice, &path, "k", "once").await.data(201),
        lines[0]
    );
    assert_ne!(
        post_once(&bob, &path, "k", "once").await.data(201)["id"],
        lines[0]["id"],
        "another's key is another key"
    );
    assert_ne!(
        post_once(&alice, &other, "k", "once").await.data(201)["id"],
        lines[0]["id"],
        "and so is another room's"
    );
    assert_eq!(
        message_contents(&channel_history(&alice, &path, "").await),
        ["once", "once"]
    );
    post_once(&alice, &path, "k k", "x")
        .await
        .refused(400, "ERR_VALIDATION");
});

story!(
    history_goes_on_from_a_cursor_in_either_direction,
    |hub| async {
        //
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let (path, noise) = (
            create_channel(&alice, "ops").await,
            create_channel(&bob, "noise").await,
        );
        for number in 0..7 {
            post_message(&alice, &path, &number.to_string()).await;
            post_message(&bob, &noise, "elsewhere").await;
        }
        let whole = channel_history(&alice, &path, "").await;
        assert_eq!(
            message_contents(&whole),
            ["0", "1", "2", "3", "4", "5", "6"]
        );
        let (mut since, mut all) = (0, Vec::new());
        loop {
            let page = channel_history(&alice, &path, &format!("?since={since}&limit=3")).await;
            let Some(last) = page.last() else { break };
            since = last["cursor"].as_u64().unwrap();
            all.extend(page);
        }
        assert_eq!(all, whole);
        let middle = whole[4]["cursor"].as_u64().unwrap();
        assert_eq!(
            message_contents(
                &channel_history(&alice, &path, &format!("?before={middle}&limit=2")).await
            ),
            ["2", "3"]
        );
        let end = i64::MAX;
        assert_eq!(
            message_contents(
                &channel_history(&alice, &path, &format!("?before={end}&limit=2")).await
            ),
            ["5", "6"]
        );
        for bad in [
            "?since=abc",
            "?since=-1",
            "?since=1-2",
            "?before=x",
            "?since=1&before=2",
            "?limit=0",
            "?since=1&since=2",
        ] {
            alice
                .get(&format!("{path}/messages{bad}"))
                .await
                .refused(400, "ERR_VALIDATION");
        }
    }
);

story!(
    a_stream_goes_on_where_it_stopped_also_on_another_day_of_the_hub,
    |hub| async {
        //
        let alice = hub.agent("alice").await;
        let path = create_channel(&alice, "ops").await;
        let first = post_message(&alice, &path, "one").await["cursor"]
            .as_u64()
            .unwrap();
        post_message(&alice, &path, "two").await;
        hub.restart().await;
        let alice = hub.reconnect(&alice);
        let at = |query: &str| alice.request("GET", &format!("{path}/stream{query}"));
        let mut by_header =
            Stream::open(at("?since=0").header("last-event-id", first.to_string())).await;
        let mut by_query = Stream::open(at(&format!("?since={first}"))).await;
        for stream in [&mut by_header, &mut by_query] {
            let connected = stream.next("connected").await.data;
            assert_eq!(
                (&connected["name"], &connected["as"]),
                (&json!("ops"), &json!("alice"))
            );
            assert_eq!(stream.next("message").await.data["content"], "two");
        }
        post_message(&alice, &path, "three").await;
        for stream in [&mut by_header, &mut by_query] {
            assert_eq!(
                stream.next("message").await.data["content"],
                "three",
                "no gap and no repeat"
            );
        }
        for bad in ["?since=x", "?since=2026-01-01"] {
            alice
                .get(&format!("{path}/stream{bad}"))
                .await
                .refused(400, "ERR_VALIDATION");
        }
    }
);

story!(a_single_use_token_opens_a_rooms_stream_once, |hub| async {
    //
    let (alice, eve) = (hub.agent("alice").await, hub.agent("eve").await);
    let path = create_channel(&alice, "ops").await;
    let token = async |by: &Agent| {
        let data = by.post("/agent/session", &json!({})).await.data(200);
        data["session_token"].as_str().unwrap().to_owned()
    };
    let hers = token(&alice).await;
    let mut stream = hub
        .anonymous()
        .stream(&format!("{path}/stream?session={hers}"))
        .await;
    stream.next("connected").await;
    post_message(&alice, &path, "hello").await;
    assert_eq!(stream.next("message").await.data["content"], "hello");
    hub.anonymous()
        .get(&format!("{path}/stream?session={hers}"))
        .await
        .refused(401, "ERR_UNAUTHORIZED");
    let strangers = token(&eve).await;
    hub.anonymous()
        .get(&format!("{path}/stream?session={strangers}"))
        .await
        .refused(404, "ERR_NOT_FOUND");
    alice
        .get(&format!("{path}/stream?token={}", alice.key))
        .await
        .refused(400, "ERR_DEPRECATED");
});

story!(
    a_removed_member_hears_nothing_more_and_the_others_go_on,
    |hub| async {
        let (alice, bob, carol) = (
            hub.agent("alice").await,
            hub.agent("bob").await,
            hub.agent("carol").await,
        );
        let path = create_channel(&alice, "ops").await;
        add_agent(&alice, &path, &bob).await;
        add_agent(&alice, &path, &carol).await;
        let (mut his, mut hers) = (
            open_channel_stream(&bob, &path).await,
            open_channel_stream(&carol, &path).await,
        );
        let mut inbox = bob.inbox().await;
        alice.delete(&format!("{path}/members/bob")).await.data(200);
        post_message(&alice, &path, "without bob").await;
        let last = his.ended().await;
        let end = last.last().expect("a word at the end");
        assert_eq!(
            (end.name.as_str(), &end.data["reason"]),
            ("closing", &json!("removed"))
        );
        assert!(!last.iter().any(|event| event.text.contains("without bob")));
        assert_eq!(hers.next("member").await.data["change"], "removed");
        assert_eq!(hers.next("message").await.data["content"], "without bob");
        bob.get(&format!("{path}/stream"))
            .await
            .refused(404, "ERR_NOT_FOUND");
        carol
            .send_expecting(&bob.id, "to you alone", "delivered_sse")
            .await;
        assert_eq!(
            inbox.next("message").await.message_text(),
            "to you alone",
            "the inbox is no room's business"
        );
    }
);

story!(a_rotated_key_ends_the_streams_in_rooms_too, |hub| async {
    //
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let path = create_channel(&alice, "ops").await;
    add_agent(&alice, &path, &bob).await;
    let (mut his, mut hers) = (
        open_channel_stream(&bob, &path).await,
        open_channel_stream(&alice, &path).await,
    );
    let data = bob
        .post("/register", &crate::support::actors::registration(&bob.id))
        .await
        .data(200);
    assert_eq!(his.next("closing").await.data["reason"], "key_rotated");
    let bob = bob.with_rotated_key(data["api_key"].as_str().unwrap());
    let mut again = open_channel_stream(&bob, &path).await;
    post_message(&alice, &path, "still here?").await;
    for stream in [&mut again, &mut hers] {
        assert_eq!(stream.next("message").await.data["content"], "still here?");
    }
});

story!(a_stream_in_a_room_is_no_open_inbox, |hub| async {
    // TRN-60, R-66
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let path = create_channel(&alice, "ops").await;
    add_agent(&alice, &path, &bob).await;
    let _stream = open_channel_stream(&bob, &path).await;
    alice
        .send_expecting(&bob.id, "are you there?", "queued")
        .await;
    assert_eq!(
        hub.anonymous().get("/health").await.data(200)["inbox_connections"],
        0
    );
});

const DAY: Duration = Duration::from_secs(24 * 3600);

story!(
    what_was_said_goes_when_its_time_is_over,
    with(|set| set.hub.retain = Some(90 * DAY)),
    |hub| async {
        let alice = hub.agent("alice").await;
        let (path, gone) = (
            create_channel(&alice, "ops").await,
            create_channel(&alice, "gone").await,
        );
        post_message(&alice, &path, "old").await;
        add_remote(&alice, &path, "timber", "https://agent.example.com/inbox/x")
            .await
            .data(201);
        alice.delete(&gone).await.data(200);
        hub.advance(60 * DAY);
        post_message(&alice, &path, "newer").await;
        hub.maintain().await;
        assert_eq!(
            message_contents(&channel_history(&alice, &path, "").await),
            ["old", "newer"],
            "60 days are not 90"
        );
        hub.advance(31 * DAY);
        eventually("the old line is trimmed", || async {
            hub.maintain().await;
            message_contents(&channel_history(&alice, &path, "").await) == ["newer"]
        })
        .await;
        alice.get(&gone).await.refused(404, "ERR_NOT_FOUND");
        let mut stream = alice.stream(&format!("{path}/stream?since=0")).await;
        stream.next("connected").await;
        stream.next("gap").await;
        assert_eq!(stream.next("message").await.data["content"], "newer");
        assert_eq!(
            alice.get(&path).await.data(200)["members"],
            2,
            "the room itself and who is in it stay"
        );
    }
);
