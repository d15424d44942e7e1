//! Conversations: the list of them, the messages of one, and the search for a text.

use crate::support::actors::channel::create_channel;
use crate::support::actors::{Agent, Answer, rows, texts};
use serde_json::{Value, json};

async fn send_in(sender: &Agent, to: &str, conversation_id: &str, text: &str) -> Value {
    let mut message = sender.message(to, text);
    message["envelope"]["conversation_id"] = json!(conversation_id);
    sender.post("/messages", &message).await.data(202)
}

/// Sends as many messages as asked for, a hundred at a time.
async fn send_many(sender: &Agent, to: &str, count: usize) {
    for start in (0..count).step_by(100) {
        let sends = (start..count.min(start + 100)).map(async |number| {
            let text = format!("line {number}");
            sender.send(to, &text).await
        });
        for answer in futures_util::future::join_all(sends).await {
            assert_eq!(answer.status, 202, "{answer:?}");
        }
    }
}

fn next_of(answer: &Answer) -> Value {
    answer.json()["metadata"]["next"].clone()
}

story!(
    a_conversation_has_its_newest_line_and_what_is_unread,
    |hub| async {
        // D-116, R-81
        let alice = hub.agent("alice").await;
        let bob = hub.agent("bob").await;
        let carol = hub.agent("carol").await;
        send_in(&bob, &alice.id, "review", "one").await;
        let second = send_in(&bob, &alice.id, "review", "two").await;
        let third = send_in(&bob, &alice.id, "review", "three").await;
        alice.send_expecting(&carol.id, "hello", "queued").await;
        bob.send_expecting(&carol.id, "not hers", "queued").await;
        let answer = alice.get("/conversations").await;
        let found = rows(answer.data(200));
        assert_eq!(next_of(&answer), Value::Null);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(found[0]["agents"], json!([alice.id, carol.id]));
        assert_eq!(
            (&found[0]["last_text"], &found[0]["unread"]),
            (&json!("hello"), &json!(0))
        );
        let review = &found[1];
        assert_eq!(review["conversation_id"], "review");
        assert_eq!(review["last_sender_id"], bob.id);
        assert_eq!(
            (&review["messages"], &review["unread"]),
            (&json!(3), &json!(3))
        );
        let newest = alice.history("").await;
        assert_eq!(review["last_id"], newest[2]["id"]);
        assert_eq!(review["last_at"], newest[2]["timestamp"]);
        // What was shown or answered is read.
        alice.mark_shown(&second["trace_id"]).await.data(200);
        let response = json!({"status": "ok"});
        alice.respond(&third["trace_id"], &response).await.data(200);
        let found = rows(alice.get("/conversations").await.data(200));
        assert_eq!(found[1]["unread"], 1);
        // The sender has nothing to read.
        let of_bob = rows(bob.get("/conversations").await.data(200));
        assert!(of_bob.iter().all(|row| row["unread"] == 0), "{of_bob:?}");
    }
);

story!(a_talkative_peer_hides_no_conversation, |hub| async {
    // D-116
    let alice = hub.agent("alice").await;
    let kim = hub.agent("kim").await;
    let yusuf = hub.agent("yusuf").await;
    for number in 1..=3 {
        let text = format!("plan {number}");
        send_in(&yusuf, &alice.id, "planning-7", &text).await;
    }
    send_many(&kim, &alice.id, 2_100).await;
    let first = alice.get("/conversations").await;
    let of_kim = rows(first.data(200));
    assert_eq!(of_kim.len(), 1);
    assert_eq!(of_kim[0]["messages"], 2_000);
    let next = next_of(&first);
    let path = format!("/conversations?before={}", next.as_str().unwrap());
    let second = alice.get(&path).await;
    let rest = rows(second.data(200));
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert_eq!(rest[0]["messages"], 100);
    assert_eq!(
        (&rest[1]["conversation_id"], &rest[1]["last_text"]),
        (&json!("planning-7"), &json!("plan 3"))
    );
    assert_eq!(next_of(&second), Value::Null);
    // The messages of the quiet peer come at once, in pages from the newest back.
    let planning = "/agent/messages?peer=yusuf&conversation_id=planning-7&limit=2";
    let page = alice.get(planning).await;
    assert_eq!(texts(&rows(page.data(200))), ["plan 2", "plan 3"]);
    let next = next_of(&page);
    let older = alice
        .get(&format!("{planning}&before={}", next.as_str().unwrap()))
        .await;
    assert_eq!(texts(&rows(older.data(200))), ["plan 1"]);
    assert_eq!(next_of(&older), Value::Null);
    let whole = read_back(&alice, "/agent/messages?peer=kim%40chorus&limit=500").await;
    assert_eq!(whole.len(), 2_100);
    assert!(whole.is_sorted_by(|a, b| a["id"].as_u64() > b["id"].as_u64()));
});

/// All pages of a search, newest first.
async fn read_back(agent: &Agent, path: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut page = agent.get(path).await;
    loop {
        found.extend(rows(page.data(200)).into_iter().rev());
        match next_of(&page).as_str() {
            None => return found,
            Some(next) => page = agent.get(&format!("{path}&before={next}")).await,
        }
    }
}

story!(a_text_is_found_in_upper_and_lower_case, |hub| async {
    // D-116: the same on both engines, also outside ASCII
    let alice = hub.agent("alice").await;
    let bob = hub.agent("bob").await;
    send_in(&bob, &alice.id, "review", "Die Änderung ist fertig").await;
    bob.send_expecting(&alice.id, "100% of it_", "queued").await;
    alice
        .send_expecting(&bob.id, "Danke für die änderung", "queued")
        .await;
    let find = async |query: &str| {
        let answer = alice.get(&format!("/agent/messages?{query}")).await;
        texts(&rows(answer.data(200)))
    };
    assert_eq!(
        find("text=%C3%84NDERUNG").await,
        ["Die Änderung ist fertig", "Danke für die änderung"]
    );
    assert_eq!(
        find("text=%C3%A4nderung&conversation_id=").await,
        ["Danke für die änderung"]
    );
    assert_eq!(
        find("text=%C3%A4nderung&conversation_id=review&peer=~bob").await,
        ["Die Änderung ist fertig"]
    );
    // No character has a meaning of its own.
    assert_eq!(find("text=0%25%20of").await, ["100% of it_"]);
    assert!(find("text=1_0").await.is_empty());
    assert!(find("peer=absent@chorus").await.is_empty());
    for query in ["since=0&peer=bob", "since=0&before=5", "text=", "before=x"] {
        let answer = alice.get(&format!("/agent/messages?{query}")).await;
        answer.refused(400, "ERR_VALIDATION");
    }
    let long = format!("/agent/messages?text={}", "x".repeat(201));
    alice.get(&long).await.refused(400, "ERR_VALIDATION");
});

story!(
    an_operator_sees_who_wrote_to_whom_and_no_text,
    |hub| async {
        // D-116, R-35
        let alice = hub.agent("alice").await;
        let bob = hub.agent("bob").await;
        send_in(&bob, &alice.id, "secret-plan", "between us").await;
        alice.send_expecting(&bob.id, "yes", "queued").await;
        let operator = hub.operator();
        let answer = operator.get("/conversations").await;
        let found = rows(answer.data(200));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["agents"], json!([alice.id, bob.id]));
        assert_eq!(
            (&found[0]["messages"], &found[0]["last_sender_id"]),
            (&json!(2), &json!(alice.id))
        );
        assert!(!answer.text.contains("between us") && !answer.text.contains("secret-plan"));
        operator
            .get("/agent/messages?peer=alice")
            .await
            .refused(403, "ERR_FORBIDDEN");
    }
);

story!(the_messages_of_a_channel_are_searched, |hub| async {
    // D-116
    let alice = hub.agent("alice").await;
    let bob = hub.agent("bob").await;
    let room = create_channel(&alice, "ops").await;
    for text in ["The DEPLOY is at ten", "lunch", "deploy is done"] {
        let post = json!({ "content": text });
        alice
            .post(&format!("{room}/messages"), &post)
            .await
            .data(201);
    }
    let find = async |query: &str| {
        let answer = alice.get(&format!("{room}/messages?{query}")).await;
        let found = rows(answer.data(200));
        let contents = found.iter().map(|row| row["content"].as_str().unwrap());
        let contents: Vec<String> = contents.map(str::to_owned).collect();
        (contents, next_of(&answer))
    };
    let (found, next) = find("text=deploy").await;
    assert_eq!(found, ["The DEPLOY is at ten", "deploy is done"]);
    assert_eq!(next, Value::Null);
    let (found, next) = find("text=deploy&limit=1").await;
    assert_eq!(found, ["deploy is done"]);
    let older = format!("text=deploy&limit=1&before={}", next.as_str().unwrap());
    assert_eq!(find(&older).await.0, ["The DEPLOY is at ten"]);
    bob.get(&format!("{room}/messages?text=deploy"))
        .await
        .refused(404, "ERR_NOT_FOUND");
    alice
        .get(&format!("{room}/messages?text=deploy&since=1"))
        .await
        .refused(400, "ERR_VALIDATION");
});
