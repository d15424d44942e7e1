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
