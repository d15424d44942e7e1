//! The metrics as scrapers read them.

memory_story!(every_metric_has_a_help_text, |hub| async {
    // `promtool check metrics` asks for them
    let alice = hub.agent("alice").await;
    let _frames = alice.stream("/handles/~alice/stream").await;
    alice.send_advisory("~alice", "hello").await;
    let text = hub.anonymous().get("/metrics").await.text;
    let names = |prefix: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
        let mut names: Vec<String> = lines
            .filter_map(|line| line.split(' ').next().map(str::to_owned))
            .collect();
        names.sort();
        names
    };
    let types = names("# TYPE ");
    assert!(types.contains(&"chorus_frame_streams".to_owned()), "{text}");
    assert_eq!(names("# HELP "), types);
});

// OPS-01: the counts are of the whole process, and other stories run in processes of their own.
memory_story!(what_is_promised_is_counted, |hub| async {
    let alice = hub.agent("alice").await;
    let bob = hub.agent("bob").await;
    let sent = alice.send_expecting(&bob.id, "while away", "queued").await;
    let _inbox = bob.inbox().await;
    alice
        .send_expecting(&bob.id, "while listening", "delivered_sse")
        .await;
    bob.mark_shown(&sent["trace_id"]).await.data(200);
    let text = hub.anonymous().get("/metrics").await.text;
    let value = |name: &str| -> f64 {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is not in {text}"))
            .parse()
            .unwrap()
    };
    assert_eq!(value(r#"chorus_messages_total{delivery="queued"}"#), 1.0);
    assert_eq!(value(r#"chorus_messages_total{delivery="delivered"}"#), 1.0);
    assert_eq!(value("chorus_message_shown_seconds_count"), 1.0);
    assert_eq!(value("chorus_inbox_streams"), 1.0);
    assert_eq!(value("chorus_outbox_pending"), 0.0);
    assert!(value("chorus_commit_seconds_count") >= 2.0);
    let version = format!(
        r#"chorus_build_info{{version="{}"}}"#,
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(value(&version), 1.0);
    // No name of an agent is a label.
    assert!(!text.contains("alice"), "{text}");
});

sqlite_story!(a_leap_of_the_clock_is_counted, |hub| async {
    // D-123: an operator has to learn that the clock of the machine was set
    hub.maintain().await;
    hub.leap(3_600 * 1_000_000);
    hub.maintain().await;
    hub.maintain().await;
    let text = hub.anonymous().get("/metrics").await.text;
    let count = text
        .lines()
        .find_map(|line| line.strip_prefix("chorus_clock_leaps_total "));
    assert_eq!(count, Some("1"), "{text}");
});
