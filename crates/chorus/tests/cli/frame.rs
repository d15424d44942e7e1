//! Frame commands between sessions of one handle: watch, ask, hand over, decide (FRM-22, FRM-29…46, R-42, R-43).

use crate::actors::{Agent, RunningProcess, Scene, run};
use serde_json::{Value, json};

impl Agent {
    /// Starts a command in a session.
    pub fn start_in_session(&self, session: &str, args: &[&str]) -> RunningProcess {
        let mut command = self.command(&[&["--json"], args].concat());
        command.env("CHORUS_SESSION", session);
        RunningProcess::start(command)
    }

    /// Runs a command in a session until it ends.
    pub fn run_in_session(&self, session: &str, args: &[&str]) -> crate::actors::CommandOutput {
        let mut command = self.command(&[&["--json"], args].concat());
        command.env("CHORUS_SESSION", session);
        run(command, "")
    }

    /// The first `count` frames that the hub still keeps, as any session sees them.
    pub fn kept_frames(&self, count: usize) -> Vec<Value> {
        self.kept_frames_for("reader", count)
    }

    /// The first `count` frames that the hub still keeps, as one session sees them.
    pub fn kept_frames_for(&self, session: &str, count: usize) -> Vec<Value> {
        let lines = self
            .run_in_session(
                session,
                &["watch", "--since", "0", "--count", &count.to_string()],
            )
            .ok()
            .json();
        lines
            .into_iter()
            .map(|line| line["frame"].clone())
            .collect()
    }
}

pub fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text: {value}"))
        .to_owned()
}

// FRM-22, FRM-29, FRM-66, R-43
#[test]
fn an_advisory_names_its_session_files_worktree_and_branch() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let repository = alice.home.join("shop");
    std::fs::create_dir_all(repository.join("src")).unwrap();
    std::fs::create_dir_all(repository.join(".git")).unwrap();
    std::fs::write(repository.join(".git/HEAD"), "ref: refs/heads/auth\n").unwrap();
    std::fs::write(repository.join("src/auth.rs"), "").unwrap();
    let mut command = alice.command(&[
        "advise",
        "moving",
        "it",
        "--file",
        "auth.rs",
        "--session",
        "s1",
        "--json",
    ]);
    command
        .current_dir(repository.join("src"))
        .args(["--instrument", "cc-editor"]);
    let sent = run(command, "").ok().json().remove(0);
    assert_eq!(
        sent["recipient_count"], 0,
        "no session is listening, which is no error"
    );
    let frame = alice.kept_frames(1).remove(0);
    assert_eq!(frame["frame_id"], sent["frame_id"]);
    assert_eq!(
        (&frame["sender_handle"], &frame["acted_by"]),
        (&json!("~alice"), &json!("~alice"))
    );
    assert_eq!(
        (&frame["drafted_with"], &frame["provenance_basis"]),
        (&json!("~cc-editor"), &json!("session:cc-editor@s1"))
    );
    let root = repository.display().to_string();
    let payload = json!({ "advisory_text": "moving it", "file_refs": ["src/auth.rs"], "worktree": root, "branch": "auth" });
    assert_eq!(frame["payload"], payload);
}

// R-85
#[test]
fn a_watcher_names_a_sender_in_every_spelling() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice.run_in_session("s1", &["advise", "one"]).ok();
    for name in ["alice", "~alice", "alice@chorus"] {
        let filter = format!("kind:agent_advisory,sender:{name}");
        let watch = ["watch", "--since", "0", "--filter", &filter, "--once"];
        let heard = alice.run_in_session("s2", &watch).ok().json();
        assert_eq!(
            heard[0]["frame"]["payload"]["advisory_text"], "one",
            "{name}"
        );
    }
}

// R-42, FRM-75, FRM-81
#[test]
fn a_watcher_gets_only_the_requested_kinds_and_invalid_filters_are_refused() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice.run_in_session("s1", &["advise", "one"]).ok();
    alice
        .run_in_session(
            "s1",
            &["broadcast", "two", "--event", "merged", "--ref", "4f2c9e1"],
        )
        .ok();
    alice.run_in_session("s1", &["advise", "three"]).ok();
    let only = alice
        .run_in_session(
            "s2",
            &[
                "watch",
                "--since",
                "0",
                "--kind",
                "agent_broadcast",
                "--once",
            ],
        )
        .ok()
        .json();
    let frame = only
        .iter()
        .find(|line| line["event"] == "agent_broadcast")
        .unwrap();
    assert_eq!(
        frame["frame"]["payload"],
        json!({"broadcast_text":"two","event_class":"merged","refs":["4f2c9e1"]})
    );
    let both = [
        "watch",
        "--since",
        "0",
        "--kind",
        "agent_broadcast",
        "--kind",
        "agent_advisory",
        "--count",
        "3",
    ];
    assert_eq!(alice.run_in_session("s2", &both).ok().json().len(), 3);
    for bad in [
        "colour:red",
        "kind:agent_advice",
        "sender:Alice Smith",
        "kind:",
        "sender:alice@elsewhere",
    ] {
        assert_eq!(
            alice.run_in_session("s2", &["watch", "--filter", bad]).code,
            1,
            "{bad}"
        );
    }
    let shown = alice
        .run(&["watch", "--since", "0", "--count", "2"])
        .ok()
        .out;
    assert!(
        shown.contains("~alice cli@s1 advisory one\n")
            && shown.contains("broadcast merged: two [4f2c9e1]"),
        "{shown}"
    );
}

// FRM-71, R-52
#[test]
fn a_gap_is_reported_and_the_kept_frames_follow() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice.run_in_session("s1", &["advise", "kept"]).ok();
    let lines = alice
        .run_in_session("s2", &["watch", "--since", "7-3", "--once"])
        .ok()
        .json();
    assert_eq!(lines[0], json!({"event":"resume-gap"}));
    assert_eq!(lines[1]["frame"]["payload"]["advisory_text"], "kept");
    let id = text(&lines[1]["id"]);
    alice.run_in_session("s1", &["advise", "next"]).ok();
    let lines = alice
        .run_in_session("s2", &["watch", "--since", &id, "--once"])
        .ok()
        .json();
    assert_eq!(
        (lines.len(), &lines[0]["frame"]["payload"]["advisory_text"]),
        (1, &json!("next"))
    );
}

// FRM-36, R-40
#[test]
fn a_question_collects_the_answers_that_name_it() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let asking = alice.start_in_session(
        "s1",
        &[
            "ask", "who", "uses", "it?", "--window", "60s", "--count", "1",
        ],
    );
    let query = text(&asking.json()["query_id"]);
    assert_eq!(
        alice.kept_frames(1)[0]["payload"]["response_scope"],
        "~alice/cli@s1"
    );
    let other = "00000000-0000-4000-8000-000000000000";
    alice
        .run_in_session("s2", &["answer", other, "noise", "--to", "~alice"])
        .ok();
    alice
        .run_in_session("s2", &["answer", &query, "the", "importer"])
        .ok();
    let answers: Vec<Value> = asking
        .remaining_lines()
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(
        (
            &answers[0]["response_text"],
            &answers[0]["responder_session_id"]
        ),
        (&json!("the importer"), &json!("s2"))
    );
    let unknown = alice.run_in_session("s2", &["answer", other, "hello?"]);
    assert_eq!(
        unknown.code, 4,
        "the question is unknown and no scope is given: {unknown:?}"
    );
}

// FRM-31, FRM-32
#[test]
fn a_handover_is_taken_once_and_unchanged() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let body = "Done: a.\nTo do: \"b\" 👋\n";
    let mut command = alice.command(&["handover", "--ref", "plan.md", "--session", "s1", "--json"]);
    command.env("CHORUS_INSTRUMENT", "cc-editor");
    let offered = run(command, body).ok().json().remove(0);
    let open = alice
        .run_in_session("s2", &["handover", "--list"])
        .ok()
        .json();
    assert_eq!(
        (open.len(), &open[0]["frame_id"]),
        (1, &offered["frame_id"])
    );
    let taken = alice
        .run_in_session("s2", &["handover", "--take"])
        .ok()
        .json()
        .remove(0);
    assert_eq!(
        (&taken["handover_body"], &taken["previous_session_id"]),
        (&json!(body), &json!("s1"))
    );
    let claim = &alice.kept_frames(2)[1]["payload"];
    assert_eq!(
        (&claim["next_session_id"], &claim["previous_session_id"]),
        (&json!("s2"), &json!("s1"))
    );
    let id = text(&offered["frame_id"]);
    for again in [&["handover", "--take"][..], &["handover", "--take", &id]] {
        let ended = alice.run_in_session("s3", again);
        assert_eq!(ended.code, 4, "{ended:?}");
    }
    let long = run(
        alice.command(&["handover", "--session", "s1"]),
        &"x".repeat(8193),
    );
    assert_eq!(long.code, 1, "{long:?}");
}

// FRM-32
#[test]
fn of_concurrent_claims_on_a_handover_exactly_one_succeeds() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    run(alice.command(&["handover", "--session", "s0"]), "work").ok();
    let codes: Vec<i32> = std::thread::scope(|threads| {
        let take = |n: usize| {
            alice
                .run_in_session(&format!("s{n}"), &["handover", "--take"])
                .code
        };
        let all: Vec<_> = (1..=4).map(|n| threads.spawn(move || take(n))).collect();
        all.into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(
        codes.iter().filter(|code| **code == 0).count(),
        1,
        "{codes:?}"
    );
    assert!(codes.iter().all(|code| matches!(code, 0 | 4)), "{codes:?}");
}

pub const MOMENT: &str = r#"{"synopsis":"Ready.","findings":["slow"],"recommendations":["wait"],"offer":"I can start.",
    "question":{"stem":"When?","options":[{"label":"Now","reasoning":"today"},{"label":"Later","reasoning":"calm"}],
    "recommended_idx":1,"hatches":{"free_text":false,"dialogue":true}}}"#;

// FRM-39…41
#[test]
fn a_decision_shows_its_recommendation_and_is_answered_once() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    std::fs::write(alice.home.join("moment.json"), MOMENT).unwrap();
    let asking = alice.start_in_session(
        "s1",
        &[
            "frame",
            "agent_binding_moment",
            "moment.json",
            "--wait",
            "60s",
        ],
    );
    let asked = text(&asking.json()["frame_id"]);
    let shown = alice.run(&["decide", "--show"]).ok().out;
    // Another agent has none, and is not kept waiting.
    let nothing = scene.agent("bystander").run(&["decide", "--show"]).ok();
    assert_eq!(nothing.out, "no decision is open\n");
    assert!(
        shown.contains("1. Now: today\n") && shown.contains("2. Later (recommended): calm"),
        "{shown}"
    );
    assert_eq!(
        alice
            .run_in_session("s2", &["decide", "--choose", "3"])
            .code,
        1
    );
    assert_eq!(
        alice
            .run_in_session("s2", &["decide", "--text", "never"])
            .code,
        1,
        "it takes no free text"
    );
    // At a terminal an invalid answer is asked for again.
    run(
        alice.command(&["decide", "--session", "s2"]),
        "9\nnever\n\n2\n",
    )
    .ok();
    let answer: Value = serde_json::from_str(&asking.remaining_lines()[0]).unwrap();
    assert_eq!(
        (&answer["response_text"], &answer["responder_session_id"]),
        (&json!("2: Later"), &json!("s2"))
    );
    let response = &alice.kept_frames(2)[1]["payload"];
    assert_eq!(
        (&response["responded_to_frame_id"], &response["query_id"]),
        (&json!(asked), &json!(asked))
    );
    let late = alice.run_in_session("s3", &["decide", &asked, "--choose", "1"]);
    assert_eq!(late.code, 4, "{late:?}");
    assert_eq!(
        alice
            .run_in_session("s3", &["decide", "--wait", "1ms"])
            .code,
        5,
        "no decision is open"
    );
}

// FRM-39
#[test]
fn decide_waits_for_the_next_decision() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let deciding = alice.start_in_session("s2", &["decide", "--dialogue", "why so late?"]);
    run(
        alice.command(&["frame", "agent_binding_moment", "--session", "s1"]),
        MOMENT,
    )
    .ok();
    assert_eq!(deciding.json()["frame"]["payload"]["synopsis"], "Ready.");
    assert_eq!(deciding.json()["response_text"], "dialogue: why so late?");
}

// FRM-42…46, R-40, R-49
#[test]
fn symptoms_findings_and_intents_reach_the_other_sessions() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let asked = alice
        .run_in_session(
            "s1",
            &[
                "diagnose",
                "it hangs",
                "--severity",
                "blocked",
                "--ref",
                "ci/1",
            ],
        )
        .ok()
        .json();
    let id = text(&asked[0]["diagnostic_id"]);
    alice
        .run_in_session(
            "s2",
            &[
                "diagnose",
                "--answer",
                &id,
                "the clock",
                "--remediation",
                "restart it",
            ],
        )
        .ok();
    let declared = alice
        .run_in_session(
            "s1",
            &["intent", "declare", "ci:run", "branch/a", "--urgent"],
        )
        .ok()
        .json();
    let intent = text(&declared[0]["frame_id"]);
    alice
        .run_in_session("s1", &["intent", "withdraw", "ci:run", &intent])
        .ok();
    alice
        .run_in_session(
            "s2",
            &["intent", "flush", "ci:run", "ci/2", "--ref", "branch/b"],
        )
        .ok();
    let frames = alice.kept_frames(5);
    assert_eq!(frames[0]["payload"]["severity"], "blocked");
    assert_eq!(
        frames[1]["payload"],
        json!({"diagnostic_id":id,"finding":"the clock","remediation":"restart it"})
    );
    let declare = &frames[2]["payload"];
    assert_eq!(declare["urgency"], "urgent");
    assert_eq!(declare["withdrawable"], true);
    assert_eq!(declare["ttl"], 300_000);
    assert_eq!(frames[3]["payload"]["intent_ref"], json!(intent));
    assert_eq!(frames[4]["payload"]["batch_refs"], json!(["branch/b"]));
    let refused = |args: &[&str]| alice.run_in_session("s1", args).code;
    assert_eq!(refused(&["intent", "declare", "no-namespace", "x"]), 1);
    assert_eq!(
        refused(&["diagnose", "it hangs"]),
        1,
        "a symptom has a severity"
    );
}

// FRM-105
#[test]
fn a_stale_frame_is_not_shown() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice
        .run_in_session("s1", &["advise", "gone at once", "--stale-after", "1ms"])
        .ok();
    alice
        .run_in_session("s1", &["advise", "still good", "--stale-after", "1h"])
        .ok();
    assert_eq!(
        alice.kept_frames(1)[0]["payload"]["advisory_text"],
        "still good"
    );
}
