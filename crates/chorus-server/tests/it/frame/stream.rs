//! A handle's frame stream: how it opens, what it carries, its roster, how it ends.

use crate::support::actors::registration;
use crate::support::hub::{eventually, within};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::Duration;

story!(
    a_stream_opens_by_saying_who_and_how_long_frames_are_kept,
    |hub| async {
        // FRM-62, FRM-112, R-42
        let alice = hub.agent("alice").await;
        let mut stream = alice
            .stream(&alice.stream_path("?instrument=cc-editor&session=s1"))
            .await;
        assert!(stream.header("cache-control").contains("no-store"));
        let connected = stream.next("connected").await;
        let keys: Vec<&str> = connected
            .data
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        for key in ["handle", "instrument", "session", "retention"] {
            assert!(keys.contains(&key), "{connected:?}");
        }
        assert_eq!(connected.data["handle"], "~alice");
        assert_eq!(
            (&connected.data["instrument"], &connected.data["session"]),
            (&json!("cc-editor"), &json!("s1"))
        );
        assert_eq!(connected.data["retention"]["seconds"], 300);
        assert_eq!(connected.data["retention"]["frames"], 10_000);
        assert!(
            String::from_utf8_lossy(&stream.raw).contains("retry: "),
            "when to come back"
        );
    }
);

memory_story!(a_session_without_a_name_gets_one_of_its_own, |hub| async {
    // `unknown`, a random id; the tool is the instrument up to its first dash
    let alice = hub.agent("alice").await;
    let mut open = Vec::new();
    for query in [
        "",
        "?",
        "?instrument=cc-editor-pro",
        "?instrument=vim&session=s1",
        "?session=s2&tool=ide",
    ] {
        open.push(alice.open_session_with(query).await);
    }
    let told: Vec<&Value> = open.iter().map(|session| &session.connected.data).collect();
    assert_eq!(
        [&told[0]["instrument"], &told[1]["instrument"]],
        ["unknown", "unknown"]
    );
    let names: HashSet<&str> = told[..3]
        .iter()
        .map(|data| data["session"].as_str().unwrap())
        .collect();
    assert!(
        names.len() == 3 && names.iter().all(|name| name.len() >= 8),
        "{names:?}"
    );
    let mut tools: Vec<String> = alice
        .roster()
        .await
        .iter()
        .map(|row| row["tool"].as_str().unwrap().to_owned())
        .collect();
    tools.sort();
    assert_eq!(tools, ["cc", "ide", "unknown", "unknown", "vim"]);
});

memory_story!(
    a_misnamed_session_is_refused_by_its_parameter,
    |hub| async {
        // `[A-Za-z0-9._-]{1,128}`
        let alice = hub.agent("alice").await;
        let (longest, long) = ("x".repeat(128), "x".repeat(129));
        for place in ["instrument", "session", "tool"] {
            for value in ["", "a%20b", "a/b", "a@b", "a*", "é", long.as_str()] {
                let answer = alice.try_open_session(&format!("?{place}={value}")).await;
                answer.frame_refused(400, "field-invalid", Some(place));
            }
            alice
                .open_session_with(&format!("?{place}={longest}"))
                .await;
        }
        alice.open_session("A.b_c-9", "S.1_-").await;
    }
);

story!(a_naive_reader_understands_every_event, |hub| async {
    // FRM-69, R-42, lesson 3: LF, one data line, an id
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session("cc-editor", "s1").await;
    alice
        .send_advisory("~alice", "line\r\nbreaks\u{2028}and\u{85}all")
        .await;
    let event = session.advisory().await;
    let text = String::from_utf8(session.raw.clone()).unwrap();
    assert!(!text.contains('\r'), "{text:?}");
    let block = text
        .split("\n\n")
        .find(|block| block.contains("event: agent_advisory\n"))
        .expect("a block");
    let mut lines: Vec<&str> = block
        .split('\n')
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, ["data:", "event:", "id:"], "{block:?}");
    assert!(block.contains(&format!("id: {}", event.id.unwrap())));
});

memory_story!(
    every_frame_has_an_id_of_its_own_and_all_streams_agree_on_it,
    |hub| async {
        // FRM-69, R-42: the id is the handle's, not the connection's
        let alice = hub.agent("alice").await;
        let (mut one, mut two) = (
            alice.open_session("cc-editor", "s1").await,
            alice.open_session("vim", "s2").await,
        );
        let mut seen = HashSet::new();
        for number in 0..20 {
            alice.send_advisory("~alice", &number.to_string()).await;
            let (here, there) = (one.advisory().await, two.advisory().await);
            assert_eq!((&here.id, &here.text), (&there.id, &there.text));
            assert!(seen.insert(here.id.unwrap()), "ids are not used twice");
        }
    }
);

story!(the_roster_shows_who_is_there, |hub| async {
    // FRM-109, R-42, R-50, lesson 15
    let alice = hub.agent("alice").await;
    assert!(alice.roster().await.is_empty());
    let _first = alice
        .open_session_with("?instrument=cc-editor&session=s1&filter=kind:agent_query,org:acme")
        .await;
    hub.advance(Duration::from_secs(90));
    let second = alice.open_session("vim", "s2").await;
    let roster = alice.roster().await;
    let keys = ["instrument", "session", "tool", "since", "filter"];
    for row in &roster {
        let object = row.as_object().unwrap();
        assert!(
            object.len() == keys.len() && keys.iter().all(|key| object.contains_key(*key)),
            "{row}"
        );
    }
    let at = |session: &str| {
        roster
            .iter()
            .find(|row| row["session"] == session)
            .expect("on the roster")
            .clone()
    };
    let (early, late) = (at("s1"), at("s2"));
    assert_eq!(
        (&early["instrument"], &early["tool"]),
        (&json!("cc-editor"), &json!("cc"))
    );
    assert_eq!(early["filter"], "kind:agent_query,org:~acme");
    assert_eq!(late["filter"], "");
    let time = |row: &Value| {
        chorus_wire::time::UnixMicros::parse(row["since"].as_str().unwrap())
            .expect("RFC 3339")
            .0
    };
    assert_eq!(time(&late) - time(&early), 90_000_000);
    drop(second);
    eventually("the one that left is off the roster", || async {
        alice.roster().await.len() == 1
    })
    .await;
});

memory_story!(
    a_handle_is_read_in_any_encoding_and_no_other_spelling,
    |hub| async {
        // `%7E` is `~`; a name that is not canonical is no handle
        let alice = hub.agent("alice").await;
        alice
            .stream("/handles/%7Ealice/stream")
            .await
            .next("connected")
            .await;
        for other in [
            "alice",
            "~Alice",
            "~alice@chorus",
            "alice@chorus",
            "~~alice",
            "~",
        ] {
            let answer = alice.get(&format!("/handles/{other}/stream")).await;
            assert!(
                matches!(answer.status, 400 | 403 | 404),
                "{other}: {answer:?}"
            );
            answer.has_frame_form();
        }
    }
);

memory_story!(
    a_stream_takes_no_frames_and_one_that_closes_closes_no_other,
    |hub| async {
        // FRM-62; failure 10
        let alice = hub.agent("alice").await;
        let (one, mut two) = (
            alice.open_session("cc-editor", "s1").await,
            alice.open_session("cc-editor", "s1").await,
        );
        drop(one);
        eventually("one is left", || async { alice.roster().await.len() == 1 }).await;
        assert_eq!(alice.send_advisory("~alice", "still here").await, 1);
        assert_eq!(two.advisory_texts(1).await, ["still here"]);
        let posted = alice
            .post(
                &alice.stream_path(""),
                &json!({"frame": alice.advisory("x")}),
            )
            .await;
        posted.frame_refused(405, "method-not-allowed", None);
    }
);

memory_story!(frames_and_messages_do_not_mix, |hub| async {
    // FRM-97: two surfaces of one agent; an inbox hears no frame and a handle's stream no message
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let (mut inbox, mut session) = (
        alice.inbox().await,
        alice.open_session("cc-editor", "s1").await,
    );
    alice.send_advisory("~alice", "a frame").await;
    bob.send_expecting(&alice.id, "a message", "delivered_sse")
        .await;
    alice.send_advisory("~alice", "another").await;
    assert_eq!(inbox.texts(1).await, ["a message"]);
    assert_eq!(session.advisory_texts(2).await, ["a frame", "another"]);
    assert_eq!(alice.history("").await.len(), 1);
});

memory_story!(
    a_session_alone_makes_no_agent_reachable_by_message,
    |hub| async {
        // a handle's stream is no inbox
        let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
        let _session = alice.open_session("cc-editor", "s1").await;
        bob.send_expecting(&alice.id, "waits", "queued").await;
    }
);

story!(streams_end_with_a_word_when_the_hub_stops, |hub| async {
    // failure 18, invariant 6
    let alice = hub.agent("alice").await;
    let mut open = Vec::new();
    for number in 0..8 {
        open.push(alice.open_session("cc-editor", &format!("s{number}")).await);
    }
    alice.send_advisory("~alice", "the last word").await;
    within(Duration::from_secs(5), hub.stop())
        .await
        .expect("it stops in time");
    for session in &mut open {
        assert_eq!(session.advisory_texts(1).await, ["the last word"]);
        let end: Vec<String> = session
            .ended()
            .await
            .into_iter()
            .map(|event| event.name)
            .collect();
        assert_eq!(end, ["closing"]);
    }
});

memory_story!(streams_end_when_their_agent_is_removed, |hub| async {
    //
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session("cc-editor", "s1").await;
    hub.operator().delete("/agents/alice").await.data(200);
    let end: Vec<String> = session
        .ended()
        .await
        .into_iter()
        .map(|event| event.name)
        .collect();
    assert_eq!(end, ["closing"]);
    hub.anonymous()
        .post("/register", &registration("alice@chorus"))
        .await
        .data(201);
});

/// FRM-67, R-25, R-52: a comment at least every 20 seconds. Only real time shows it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_stream_hears_a_keepalive() {
    let hub = crate::support::hub::Hub::fresh().await;
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session("cc-editor", "s1").await;
    let chunk = within(Duration::from_secs(20), session.chunk())
        .await
        .flatten()
        .expect("a keepalive in time");
    assert!(
        chunk.starts_with(b":") && chunk.ends_with(b"\n\n"),
        "{}",
        String::from_utf8_lossy(&chunk)
    );
}
