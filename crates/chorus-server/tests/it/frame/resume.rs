//! Resuming a frame stream: what the frame ring still holds, what it drops, and that a gap is always reported.

use crate::support::actors::{Agent, Answer, advisory_text};
use crate::support::hub::Hub;
use serde_json::json;
use std::time::Duration;

story!(
    a_session_that_comes_back_hears_what_it_missed_and_then_goes_on,
    |hub| async {
        // FRM-70, R-42; failure 15
        let alice = hub.agent("alice").await;
        let mut first = alice.open_session("cc-editor", "s1").await;
        alice.send_advisory("~alice", "one").await;
        let last = first.advisory().await.id.unwrap();
        drop(first);
        for text in ["two", "three"] {
            alice.send_advisory("~alice", text).await;
        }
        let mut back = alice
            .resume_session("?instrument=cc-editor&session=s1", &last)
            .await;
        alice.send_advisory("~alice", "four").await;
        assert_eq!(
            back.advisory_texts(3).await,
            ["two", "three", "four"],
            "without a gap, in order, once"
        );
        let mut fresh = alice.open_session("cc-editor", "s2").await;
        alice.send_advisory("~alice", "five").await;
        assert_eq!(
            fresh.advisory_texts(1).await,
            ["five"],
            "without an id a stream starts at now"
        );
        assert_eq!(back.advisory_texts(1).await, ["five"]);
    }
);

memory_story!(one_that_missed_nothing_is_told_nothing, |hub| async {
    // R-42: no gap where there is none
    let alice = hub.agent("alice").await;
    let mut first = alice.open_session("cc-editor", "s1").await;
    alice.send_advisory("~alice", "one").await;
    let last = first.advisory().await.id.unwrap();
    let mut back = alice.resume_session("", &last).await;
    alice.send_advisory("~alice", "two").await;
    assert_eq!(back.advisory_texts(1).await, ["two"]);
});

memory_story!(
    what_was_not_for_a_session_is_not_for_it_later,
    |hub| async {
        // FRM-51, FRM-52, FRM-82, R-43: scope, filter and exclude_self hold for replay too
        let alice = hub.agent("alice").await;
        let mut opener = alice.open_session("cc-editor", "s0").await;
        alice.send_advisory("~alice", "start").await;
        let start = opener.advisory().await.id.unwrap();
        alice.send_advisory("~alice/vim*", "for vim").await;
        alice.send_advisory("~alice/cc-editor@s1", "for one").await;
        let own = alice.submission("/frames?exclude_self=1", "", &alice.advisory("from s1"));
        let own = own
            .header("x-chorus-instrument", "cc-editor")
            .header("x-chorus-session", "s1")
            .header("x-chorus-tool", "x");
        assert_eq!(Answer::of(own).await.status, 200);
        let merged = alice.frame(
            "agent_broadcast",
            &json!({"broadcast_text": "merged", "event_class": "merged"}),
        );
        assert_eq!(alice.submit("", &merged).await.status, 200);
        alice.send_advisory("~alice", "end").await;
        for (query, expected) in [
            (
                "?instrument=cc-editor&session=s1",
                &["for one", "", "end"][..],
            ),
            ("?instrument=cc-editor&session=s2", &["from s1", "", "end"]),
            (
                "?instrument=vim&session=s1",
                &["for vim", "from s1", "", "end"],
            ),
            (
                "?instrument=vim&session=s1&filter=kind:agent_advisory",
                &["for vim", "from s1", "end"],
            ),
            ("?instrument=vim&session=s1&filter=tool:x", &["from s1"]),
        ] {
            let mut back = alice.resume_session(query, &start).await;
            for text in expected {
                assert_eq!(
                    advisory_text(&back.any().await.expect("a frame")),
                    *text,
                    "{query}"
                );
            }
        }
    }
);

memory_story!(frames_are_kept_for_five_minutes, |hub| async {
    // FRM-72, FRM-112, R-42, R-52: then there is a gap, said once, and the stream goes on from what is kept
    let alice = hub.agent("alice").await;
    let mut first = alice.open_session("cc-editor", "s1").await;
    alice.send_advisory("~alice", "one").await;
    let one = first.advisory().await.id.unwrap();
    alice.send_advisory("~alice", "two").await;
    hub.advance(Duration::from_secs(200));
    alice.send_advisory("~alice", "three").await;
    hub.advance(Duration::from_secs(99));
    assert_eq!(
        alice.resume_session("", &one).await.advisory_texts(2).await,
        ["two", "three"],
        "all of it is still there"
    );
    hub.advance(Duration::from_secs(2));
    let mut late = alice.resume_session("", &one).await;
    late.next("resume-gap").await;
    let three = late.advisory().await;
    assert_eq!(advisory_text(&three), "three");
    alice.send_advisory("~alice", "four").await;
    assert_eq!(late.advisory_texts(1).await, ["four"]);
    let mut again = alice.resume_session("", three.id.as_deref().unwrap()).await;
    assert_eq!(
        again.advisory_texts(1).await,
        ["four"],
        "a gap is announced once"
    );
});

memory_story!(an_id_that_is_not_ours_is_a_gap, |hub| async {
    // FRM-70, R-52: never a silent start somewhere else
    let (alice, bob) = (hub.agent("alice").await, hub.agent("bob").await);
    let (mut hers, mut his) = (
        alice.open_session("vim", "s1").await,
        bob.open_session("vim", "s1").await,
    );
    alice.send_advisory("~alice", "kept").await;
    bob.send_advisory("~bob", "his").await;
    hers.advisory().await;
    let other = his.advisory().await.id.unwrap();
    for id in [
        other.as_str(),
        "nonsense",
        "0",
        "18446744073709551616",
        "-1",
    ] {
        let mut back = alice.resume_session("", id).await;
        back.next("resume-gap").await;
        assert_eq!(
            back.advisory_texts(1).await,
            ["kept"],
            "{id}: after a gap, what is kept"
        );
    }
});

single_hub_story!(an_id_from_before_a_restart_is_a_gap, |hub| async {
    // R-52: the epoch; what is new is never skipped
    let alice = hub.agent("alice").await;
    let mut first = alice.open_session("cc-editor", "s1").await;
    for text in ["one", "two"] {
        alice.send_advisory("~alice", text).await;
    }
    first.advisory_texts(1).await;
    let last = first.advisory().await.id.unwrap();
    hub.restart().await;
    let alice = hub.reconnect(&alice);
    // More than before, so that the old id would be a place in the middle of the new ones.
    for text in ["new one", "new two", "new three"] {
        alice.send_advisory("~alice", text).await;
    }
    let mut back = alice.resume_session("", &last).await;
    back.next("resume-gap").await;
    let one = back.advisory().await;
    assert_eq!(advisory_text(&one), "new one");
    assert_eq!(back.advisory_texts(2).await, ["new two", "new three"]);
    assert_eq!(
        alice
            .resume_session("", one.id.as_deref().unwrap())
            .await
            .advisory_texts(2)
            .await,
        ["new two", "new three"]
    );
});

/// Frames of `alice`, many at once, in no particular order.
async fn flood(alice: &Agent, count: usize, body: impl Fn(usize) -> String) {
    let mut sending = tokio::task::JoinSet::new();
    for number in 0..count {
        let request = alice
            .request("POST", "/frames")
            .header("content-type", "application/json")
            .body(body(number));
        if sending.len() == 32 {
            assert_eq!(sending.join_next().await.unwrap().unwrap(), 200);
        }
        sending.spawn(async move { Answer::of(request).await.status });
    }
    while let Some(status) = sending.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
}

/// The id of a first frame that the ring holds.
async fn first_id(alice: &Agent) -> String {
    let mut first = alice.open_session("cc-editor", "s1").await;
    alice.send_advisory("~alice", "first").await;
    first.advisory().await.id.unwrap()
}

/// How many frames are there after the gap, the last one told here.
async fn after_gap(hub: &Hub, alice: &Agent, id: &str) -> usize {
    alice.send_advisory("~alice", "marker").await;
    let mut back = alice.resume_session("", id).await;
    back.next("resume-gap").await;
    let mut kept = 1;
    while advisory_text(&back.advisory().await) != "marker" {
        kept += 1;
    }
    hub.anonymous().get("/health").await.data(200);
    kept
}

memory_story!(a_ring_holds_ten_thousand_frames, |hub| async {
    // R-42, R-52: the oldest go first
    let alice = hub.agent("alice").await;
    let first = first_id(&alice).await;
    let mut body = json!({"frame": alice.advisory("x")});
    let mut text = |_: usize| {
        body["frame"]["frame_id"] = crate::support::actors::frame_id().into();
        body.to_string()
    };
    let bodies: Vec<String> = (0..10_000).map(&mut text).collect();
    flood(&alice, 10_000, |number| bodies[number].clone()).await;
    // The first is still the one just before the oldest that is kept: nothing after it is missing.
    let mut whole = alice.resume_session("", &first).await;
    assert_eq!(advisory_text(&whole.advisory().await), "x");
    drop(whole);
    assert_eq!(
        after_gap(&hub, &alice, &first).await,
        10_000,
        "one more, and the oldest is gone"
    );
});

memory_story!(a_ring_holds_sixteen_mebibytes, |hub| async {
    // R-49, R-52
    let alice = hub.agent("alice").await;
    let first = first_id(&alice).await;
    let large = |_: usize| {
        let frame = alice.advisory("x").to_string();
        let padding = " ".repeat(60_000 - frame.len());
        format!(
            r#"{{"frame":{}{padding}}}}}"#,
            frame.strip_suffix('}').unwrap()
        )
    };
    flood(&alice, 200, large).await;
    let mut whole = alice.resume_session("", &first).await;
    assert_eq!(
        whole.advisory_texts(200).await.len(),
        200,
        "twelve megabytes are kept"
    );
    drop(whole);
    flood(&alice, 100, large).await;
    let kept = after_gap(&hub, &alice, &first).await;
    let most = (16 << 20) / 60_000;
    assert!(
        (most - 10..=most).contains(&kept),
        "{kept} of at most {most}"
    );
});

memory_story!(no_frame_is_ever_written_down, |hub| async {
    // FRM-72, FRM-112: in memory and nowhere else
    let alice = hub.agent("alice").await;
    let mut session = alice.open_session("cc-editor", "s1").await;
    let word = "a-word-that-is-nowhere-else";
    alice.send_advisory("~alice", word).await;
    session.advisory_texts(1).await;
    let places = ["/activity", "/metrics", "/health", "/agents/alice"];
    for path in places {
        assert!(
            !hub.operator().get(path).await.text.contains(word),
            "{path}"
        );
    }
    hub.stop().await;
    let mut files = 0;
    for file in std::fs::read_dir(hub.dir.path()).unwrap().flatten() {
        let Ok(bytes) = std::fs::read(file.path()) else {
            continue;
        };
        files += 1;
        assert!(
            !bytes.windows(word.len()).any(|w| w == word.as_bytes()),
            "{:?}",
            file.path()
        );
    }
    assert!(files > 0);
});
