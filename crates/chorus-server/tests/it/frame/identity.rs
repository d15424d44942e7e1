//! Identity of frame senders: keys, handles, attribution, and what one handle may learn of another.

use crate::support::actors::{Agent, Answer, Stream, registration};
use serde_json::{Value, json};

const CLOSED: [(&str, &str); 3] = [
    ("POST", "/frames"),
    ("GET", "/handles/~alice/stream"),
    ("GET", "/handles/~alice/roster"),
];

story!(
    without_a_key_nothing_is_said_and_nothing_is_heard,
    |hub| async {
        // FRM-62, FRM-63, FRM-99, R-45
        let alice = hub.agent("alice").await;
        let mut session = alice.open_session("cc-editor", "s1").await;
        let wrong = hub.anonymous().with_key(&format!("ca_{}", "0".repeat(32)));
        let body = json!({"frame": alice.advisory("anonymous")});
        for (method, path) in CLOSED {
            for who in [&*hub.anonymous(), &wrong] {
                let answer = Answer::of(who.request(method, path).json(&body)).await;
                answer.frame_refused(401, "unauthenticated", None);
                assert!(
                    answer.header("www-authenticate").starts_with("Bearer"),
                    "{answer:?}"
                );
            }
        }
        alice.send_advisory("~alice", "marker").await;
        assert_eq!(session.advisory_texts(1).await, ["marker"]);
    }
);

memory_story!(
    a_bare_operator_key_has_no_sessions_and_sends_no_frames,
    |hub| async {
        //
        let alice = hub.agent("alice").await;
        let mut session = alice.open_session("cc-editor", "s1").await;
        for (method, path) in CLOSED {
            let body = json!({"frame": alice.advisory("from above")});
            let answer = Answer::of(hub.operator().request(method, path).json(&body)).await;
            answer.frame_refused(403, "forbidden", None);
        }
        alice.send_advisory("~alice", "marker").await;
        assert_eq!(session.advisory_texts(1).await, ["marker"]);
    }
);

story!(a_key_speaks_for_its_own_handle_only, |hub| async {
    // FRM-06, FRM-07, FRM-64, FRM-90, FRM-95, FRM-99
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    bob.grant(&alice).await;
    let mut session = bob.open_session("vim", "s1").await;
    for sender in ["~bob", "~absent"] {
        let mut forged = alice.advisory_to("~bob", "forged");
        forged["sender_handle"] = sender.into();
        alice.submit("~bob", &forged).await.frame_refused(
            403,
            "sender-identity-mismatch",
            Some("sender_handle"),
        );
    }
    assert_eq!(alice.send_advisory("~bob", "in my own name").await, 1);
    assert_eq!(session.advisory_texts(1).await, ["in my own name"]);
});

memory_story!(no_agent_acts_in_anothers_name, |hub| async {
    // FRM-13, FRM-100, R-04, R-53
    let (alice, _bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let mut session = alice.open_session("cc-editor", "s1").await;
    for name in ["~bob", "~absent"] {
        let mut frame = alice.advisory("for another agent");
        frame["acted_by"] = name.into();
        alice.submit("", &frame).await.frame_refused(
            403,
            "sender-identity-mismatch",
            Some("acted_by"),
        );
    }
    let mut signed = alice.advisory("attributed");
    signed["drafted_with"] = "~some.model_v2@2026-03".into();
    alice
        .submit("", &signed)
        .await
        .recipient_count(signed["frame_id"].as_str().unwrap());
    let heard = session.advisory().await.data;
    assert_eq!(
        (&heard["acted_by"], &heard["drafted_with"]),
        (&signed["acted_by"], &signed["drafted_with"])
    );
});

memory_story!(
    an_owner_named_like_a_handle_is_not_that_handle,
    |hub| async {
        // FRM-100, R-04, R-05: an agent that claims the owner's name first does not become the agent of that name
        let bob = hub.agent("bob").await;
        let mut body = registration("mallory@chorus");
        for name in ["~bob", "bob@chorus"] {
            body["owner_id"] = name.into();
            hub.anonymous()
                .post("/register", &body)
                .await
                .refused(403, "ERR_OWNER_TAKEN");
        }
        let trudy = hub
            .agent_with("trudy@chorus", &json!({"owner_id": "bob"}))
            .await;
        let mut frame = trudy.advisory("signed by bob");
        frame["acted_by"] = bob.handle().into();
        trudy.submit("", &frame).await.frame_refused(
            403,
            "sender-identity-mismatch",
            Some("acted_by"),
        );
    }
);

memory_story!(an_instrument_is_no_sovereign, |hub| async {
    // FRM-13, FRM-14, R-04: an agent called ~cc-… cannot sign for itself
    let robot = hub.agent("cc-robot").await;
    let frame = robot.advisory("on my own account");
    robot
        .submit("", &frame)
        .await
        .frame_refused(400, "field-invalid", Some("acted_by"));
});

memory_story!(an_instrument_speaks_for_the_one_that_owns_it, |hub| async {
    // FRM-13, FRM-100, R-04, R-05
    let bob = hub.agent("bob").await;
    let mut body = registration("cc-robot@chorus");
    body["owner_id"] = bob.id.as_str().into();
    hub.anonymous()
        .post("/register", &body)
        .await
        .refused(403, "ERR_OWNER_TAKEN");
    let data = bob.post("/register", &body).await.data(201);
    let robot = Agent::new(&bob, "cc-robot@chorus", data["api_key"].as_str().unwrap());
    let mut session = robot.open_session("cc-robot", "s1").await;
    let mut frame = robot.advisory("for bob");
    frame["acted_by"] = "~bob".into();
    assert_eq!(
        robot
            .submit("", &frame)
            .await
            .recipient_count(frame["frame_id"].as_str().unwrap()),
        1
    );
    assert_eq!(session.advisory().await.data["acted_by"], "~bob");
    let mut back = bob.advisory("for the robot");
    back["acted_by"] = "~robot".into();
    bob.submit("", &back)
        .await
        .frame_refused(403, "sender-identity-mismatch", Some("acted_by"));
});

memory_story!(a_name_without_a_handle_has_no_stream, |hub| async {
    // another host, and names outside the handle's grammar
    for id in ["dave@elsewhere", "under_score@chorus"] {
        let stranger = hub.agent_with(id, &json!({})).await;
        let answer = stranger.try_open_session("").await;
        assert!(matches!(answer.status, 400 | 403), "{answer:?}");
        answer.has_frame_form();
        let mut frame = stranger.advisory("from elsewhere");
        for place in ["sender_handle", "recipient_handle", "acted_by"] {
            frame[place] = "~dave".into();
        }
        stranger.submit("", &frame).await.frame_refused(
            403,
            "sender-identity-mismatch",
            Some("sender_handle"),
        );
    }
});

story!(anothers_stream_and_roster_are_closed, |hub| async {
    // FRM-62, FRM-109, R-53; an unregistered handle gets the same answer, so that names cannot be probed
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let _session = alice.open_session("cc-editor", "s1").await;
    for place in ["stream", "roster"] {
        let closed = bob.get(&format!("/handles/~alice/{place}")).await;
        closed.frame_refused(403, "forbidden", None);
        let unknown = bob.get(&format!("/handles/~absent/{place}")).await;
        assert_eq!((unknown.status, unknown.text), (closed.status, closed.text));
    }
    assert_eq!(alice.roster().await.len(), 1);
});

memory_story!(a_grant_opens_the_roster_and_not_the_stream, |hub| async {
    // FRM-109, R-46, R-50
    let (alice, bob, carol) = (
        hub.agent("alice").await,
        hub.agent("bob").await,
        hub.agent("carol").await,
    );
    let _session = alice.open_session("cc-editor", "s1").await;
    alice.grant(&bob).await;
    let roster = bob.get("/handles/~alice/roster").await;
    assert_eq!(
        (roster.status, &roster.json()["sessions"][0]["session"]),
        (200, &json!("s1")),
        "{roster:?}"
    );
    bob.get("/handles/~alice/stream")
        .await
        .frame_refused(403, "forbidden", None);
    carol
        .get("/handles/~alice/roster")
        .await
        .frame_refused(403, "forbidden", None);
    alice
        .get("/handles/~bob/roster")
        .await
        .frame_refused(403, "forbidden", None);
    let taken_back = alice.delete("/handles/~alice/grants/~bob").await;
    assert!((200..300).contains(&taken_back.status), "{taken_back:?}");
    bob.get("/handles/~alice/roster")
        .await
        .frame_refused(403, "forbidden", None);
    let frame = bob.advisory_to("~alice", "once more");
    bob.submit("~alice", &frame)
        .await
        .frame_refused(403, "scope-unauthorised", Some("scope"));
});

async fn token(agent: &Agent) -> String {
    let data = agent.post("/agent/session", &json!({})).await.data(200);
    data["session_token"].as_str().unwrap().to_owned()
}

story!(a_session_token_opens_one_stream_once, |hub| async {
    // also as `?session_token=`
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let path = format!(
        "/handles/~alice/stream?session_token={}&instrument=page&session=tab-1",
        token(&alice).await
    );
    let mut stream = hub.anonymous().stream(&path).await;
    let connected = stream.next("connected").await;
    assert_eq!(
        (&connected.data["instrument"], &connected.data["session"]),
        (&json!("page"), &json!("tab-1"))
    );
    stream.next("open-items").await;
    assert_eq!(alice.send_advisory("~alice", "to the page").await, 1);
    stream.next("agent_advisory").await;
    hub.anonymous()
        .get(&path)
        .await
        .frame_refused(401, "unauthenticated", None);
    let other = format!("/handles/~alice/stream?session_token={}", token(&bob).await);
    hub.anonymous()
        .get(&other)
        .await
        .frame_refused(403, "forbidden", None);
    for unknown in ["cs_unknown", ""] {
        let path = format!("/handles/~alice/stream?session_token={unknown}");
        let answer = hub.anonymous().get(&path).await;
        assert!(matches!(answer.status, 400 | 401), "{answer:?}");
        answer.has_frame_form();
    }
    // A mistake elsewhere in the request does not cost the token.
    let token = token(&alice).await;
    let wrong = format!("/handles/~alice/stream?filter=typo:x&session_token={token}");
    hub.anonymous()
        .get(&wrong)
        .await
        .frame_refused(400, "filter-axis-unknown", Some("filter"));
    hub.anonymous()
        .stream(&format!("/handles/~alice/stream?session_token={token}"))
        .await
        .next("connected")
        .await;
});

memory_story!(no_secret_is_echoed_by_a_refusal, |hub| async {
    // invariant 12
    let alice = hub.agent("alice").await;
    let guess = hub.anonymous().with_key("ca_somebodys-guess");
    let frame = json!({"frame": alice.advisory("x")});
    for answer in [
        guess.post("/frames", &frame).await,
        guess.get("/handles/~alice/stream").await,
        hub.anonymous()
            .get("/handles/~alice/stream?session_token=cs_somebodys-guess")
            .await,
    ] {
        assert!(
            answer.status == 401 && !answer.text.contains("guess"),
            "{answer:?}"
        );
    }
});

story!(
    a_replaced_key_ends_its_streams_and_the_handle_goes_on,
    |hub| async {
        // also what a token of it opened; the ring is the handle's, not the key's
        let alice = hub.agent("alice").await;
        let mut by_key = alice.open_session("cc-editor", "s1").await;
        let path = format!(
            "/handles/~alice/stream?session_token={}",
            token(&alice).await
        );
        let mut by_token: Stream = hub.anonymous().stream(&path).await;
        by_token.next("connected").await;
        by_token.next("open-items").await;
        alice.send_advisory("~alice", "one").await;
        let last = by_key.advisory().await.id.unwrap();
        by_token.next("agent_advisory").await;
        let data = alice
            .post("/register", &registration(&alice.id))
            .await
            .data(200);
        for stream in [&mut by_key.stream, &mut by_token] {
            let end: Vec<String> = stream
                .ended()
                .await
                .into_iter()
                .map(|event| event.name)
                .collect();
            assert_eq!(end, ["closing"]);
        }
        alice
            .submit("", &alice.advisory("with the old key"))
            .await
            .frame_refused(401, "unauthenticated", None);
        alice
            .try_open_session("")
            .await
            .frame_refused(401, "unauthenticated", None);
        let alice = Agent::new(&alice, &alice.id, data["api_key"].as_str().unwrap());
        assert_eq!(
            alice.send_advisory("~alice", "two").await,
            0,
            "the old streams are no recipients"
        );
        assert_eq!(
            alice
                .resume_session("", &last)
                .await
                .advisory_texts(1)
                .await,
            ["two"]
        );
    }
);

memory_story!(a_handle_that_is_taken_again_inherits_nothing, |hub| async {
    // no frames, no grants, no streams, no remembered ids
    let (old, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    old.grant(&bob).await;
    let mut stream = old.open_session("cc-editor", "s1").await;
    let frame = old.advisory("a predecessor's");
    old.submit("", &frame)
        .await
        .recipient_count(frame["frame_id"].as_str().unwrap());
    let last = stream.advisory().await.id.unwrap();
    old.send_advisory("~alice", "another").await;
    old.delete("/agents/alice@chorus").await.data(200);
    let end = stream.ended().await;
    assert_eq!(
        end.last().map(|event| event.name.as_str()),
        Some("closing"),
        "{end:?}"
    );
    let heir = hub.agent("alice").await;
    assert!(heir.roster().await.is_empty());
    let mut resumed = heir.resume_session("", &last).await;
    let word = bob.advisory_to("~alice", "to whom it may concern");
    bob.submit("~alice", &word)
        .await
        .frame_refused(403, "scope-unauthorised", Some("scope"));
    bob.get("/handles/~alice/roster")
        .await
        .frame_refused(403, "forbidden", None);
    let answer = heir.submit("", &frame).await;
    assert_eq!(
        answer.recipient_count(frame["frame_id"].as_str().unwrap()),
        1,
        "a predecessor's id is free"
    );
    let mut heard: Vec<Value> = Vec::new();
    while heard.is_empty() {
        let event = resumed.any().await.expect("a frame");
        assert!(
            ["resume-gap", "agent_advisory"].contains(&event.name.as_str()),
            "{event:?}"
        );
        heard.extend((event.name == "agent_advisory").then_some(event.data));
    }
    assert_eq!(heard, [frame], "its own frame, not the two from before");
    heir.send_advisory("~alice", "marker").await;
    assert_eq!(resumed.advisory_texts(1).await, ["marker"]);
});
