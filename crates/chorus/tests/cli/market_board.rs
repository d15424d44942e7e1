//! The board, questions, owners and records on the command line, with real processes.

use crate::actors::{RunningProcess, Scene};
use crate::market::amounts;
use crate::servers::await_condition;
use serde_json::{Value, json};

#[test]
fn a_command_that_cannot_be_run_is_not_offered() {
    let scene = Scene::open();
    let bob = scene.agent("bob");
    for command in ["no-such-command-here", "./no-such-file", "/"] {
        let refused = bob.run(&["offer", "echo", "--cost", "0.10", "--", command]);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.err.contains(command), "{refused:?}");
    }
    bob.wait_for_skill("echo", false);
}

#[test]
fn the_standard_error_of_a_command_is_passed_on() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let log = bob.home.join("offer.log");
    let script = "echo working >&2; cat";
    let args = [
        "offer", "echo", "--json", "--cost", "0.10", "--count", "1", "--", "sh", "-c", script,
    ];
    let log_file = std::fs::File::create(&log).unwrap();
    let mut offering = crate::actors::RunningProcess::start_with_log(bob.command(&args), log_file);
    bob.wait_for_skill("echo", true);
    alice.hire("echo", "{}", &["--wait"]).ok();
    assert_eq!(offering.await_exit(), Some(0));
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(text.contains("working"), "{text}");
}

// R-64: an account belongs to the owner, whose name is not the agent's
#[test]
fn an_agent_of_a_named_owner_sees_and_pays_its_credits() {
    let scene = Scene::open();
    let carol = scene.newcomer("carol");
    let registered = carol.run(&["register", "carol", "--culture", "en", "--owner", "works"]);
    registered.ok();
    let dave = scene.agent("dave");
    assert_eq!(carol.balance(), amounts("100.00", "0.00"));
    assert_eq!(carol.json(&["ledger"])[0]["kind"], "grant");
    carol.run(&["transfer", "dave@chorus", "1"]).ok();
    assert_eq!(carol.balance(), amounts("99.00", "0.00"));
    assert_eq!(dave.balance(), amounts("101.00", "0.00"));
    let credited = scene.operator(&["admin", "credit", "works", "5", "--reason", "invoice 7"]);
    assert!(credited.ok().out.contains("104.00"));
    assert_eq!(carol.balance(), amounts("104.00", "0.00"));
}

#[test]
fn a_job_shows_its_output_and_a_late_one_its_code() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let echo = bob.offer("echo", &["--description", "Says it again"], &["cat"]);
    let job = alice
        .hire("echo", r#"{"text":"x"}"#, &["--wait", "--json"])
        .ok()
        .json();
    let id = job[0]["job_id"].as_str().unwrap();
    let shown = alice.run(&["jobs", id]).ok();
    assert!(shown.out.contains(r#"{"text":"x"}"#), "{shown:?}");
    let listed = alice.run(&["skills", "echo"]).ok();
    assert!(
        listed.out.contains("Says it again")
            && listed
                .out
                .contains("1 done, 0 failed for 1 owner, 0.10 earned"),
        "{listed:?}"
    );
    let reputation = alice.run(&["reputation", "bob@chorus"]).ok();
    assert!(
        reputation.out.contains("51.0") && reputation.out.contains("alice@chorus"),
        "{reputation:?}"
    );
    let jobs = scene.operator(&["admin", "jobs"]).ok();
    assert!(jobs.out.contains(id), "{jobs:?}");
    drop(echo);
    let _lingers = bob.offer("lingers", &[], &["tail", "-f", "/dev/null"]);
    let late = alice.hire("lingers", "{}", &["--wait", "--deadline", "1s"]);
    assert_eq!(late.code, 4, "{late:?}");
    assert!(late.err.contains("DEADLINE"), "{late:?}");
}

#[test]
fn a_job_on_the_board_is_claimed_delivered_and_approved() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let _offering = bob.offer("echo", &[], &["cat"]);
    let hired = alice.hire(
        "echo",
        r#"{"text":"x"}"#,
        &["--board", "--approve-within", "1h", "--json"],
    );
    let id = hired.ok().json()[0]["job_id"].as_str().unwrap().to_owned();
    // JOB-19: the cost of an open job is 0, so people are shown its budget.
    let open = alice.run(&["jobs", &id]).ok().out;
    assert!(open.contains("  0.15  "), "{open}");
    let board = bob.run(&["board", "--skill", "echo"]).ok();
    assert!(
        board.out.contains(&id) && board.out.contains(r#"{"text":"x"}"#),
        "{board:?}"
    );
    bob.run(&["board", &id, "--claim"]).ok();
    assert_eq!(bob.run(&["board"]).ok().out, "");
    bob.run(&["jobs", &id, "--progress", "half of it"]).ok();
    assert!(alice.run(&["jobs", &id]).ok().out.contains("half of it"));
    bob.run(&["jobs", &id, "--done", r#"{"text":"y"}"#]).ok();
    assert_eq!(alice.json(&["jobs", &id])[0]["state"], "delivered");
    assert_eq!(alice.balance(), amounts("99.85", "0.15"));
    let approved = alice.json(&["jobs", &id, "--approve"]).remove(0);
    assert_eq!(
        (&approved["status"], &approved["output_data"]),
        (&json!("SUCCESS"), &json!({"text": "y"}))
    );
    assert_eq!(alice.balance(), amounts("99.90", "0.00"));
    let ended = alice.run(&["jobs", &id]).ok().out;
    assert!(ended.contains("  0.10  "), "{ended}");
}

#[test]
fn an_offer_with_the_board_claims_and_does_its_jobs() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let offering = bob.offer("echo", &["--board"], &["cat"]);
    let ended = alice
        .hire("echo", r#"{"text":"x"}"#, &["--board", "--wait"])
        .ok();
    assert_eq!(
        serde_json::from_str::<Value>(&ended.out).unwrap(),
        json!({"text": "x"})
    );
    assert_eq!(offering.json()["status"], "SUCCESS");
}

#[test]
fn a_command_asks_a_question_and_gets_the_answer() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let script = r#"if [ -n "$CHORUS_ANSWER" ]; then echo "{\"said\":\"$CHORUS_ANSWER\"}"; else echo '{"chorus_question":"Which one?"}'; fi"#;
    let offering = bob.offer("asks", &[], &["sh", "-c", script]);
    let job = alice.hire("asks", "{}", &["--json"]).ok().json().remove(0);
    let id = job["job_id"].as_str().unwrap();
    assert_eq!(offering.json()["status"], "PENDING");
    let shown = alice.json(&["jobs", id]).remove(0);
    assert_eq!(
        (&shown["state"], &shown["question"]),
        (&json!("input-required"), &json!("Which one?"))
    );
    alice.run(&["jobs", id, "--answer", "the first"]).ok();
    assert_eq!(offering.json()["status"], "SUCCESS");
    assert_eq!(
        alice.json(&["jobs", id])[0]["output_data"],
        json!({"said": "the first"})
    );
}

// R-86
#[test]
fn a_command_declines_an_input_without_losing_score() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let script = r#"echo '{"chorus_decline":"the text is in no language that I know"}'"#;
    let offer = ["offer", "translate", "--cost", "0.10", "--count", "1", "--"];
    let offer = [&offer[..], &["sh", "-c", script]].concat();
    let offering = RunningProcess::start(bob.command(&offer));
    bob.wait_for_skill("translate", true);
    let declined = alice.hire("translate", "{}", &["--wait"]);
    assert_eq!(declined.code, 4, "{declined:?}");
    for part in ["no language that I know", "SKILL_MISMATCH"] {
        assert!(declined.err.contains(part), "{declined:?}");
    }
    assert_eq!(alice.balance(), amounts("100.00", "0.00"));
    let told = offering.remaining_lines().join("\n");
    assert!(told.contains("DECLINED for alice@chorus"), "{told}");
    let reputation = bob.json(&["reputation", "bob"]).remove(0);
    assert_eq!(reputation["score"], 50.0, "{reputation}");
}

#[test]
fn a_listener_reads_about_jobs_in_sentences() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let offering = bob.offer("echo", &["--count", "1"], &["cat"]);
    let log = alice.home.join("heard");
    let file = std::fs::File::create(&log).unwrap();
    let mut command = alice.command(&["listen"]);
    command.stdout(file).stdin(std::process::Stdio::null());
    let mut listening = command.spawn().unwrap();
    await_condition("the listener", || {
        alice.json(&["discover", "--online"]).len() == 2
    });
    alice.hire("echo", r#"{"text":"x"}"#, &["--wait"]).ok();
    offering.remaining_lines();
    let heard = || std::fs::read_to_string(&log).unwrap();
    await_condition("the end of the job", || heard().contains("job"));
    listening.kill().unwrap();
    listening.wait().unwrap();
    let heard = heard();
    assert!(
        heard.starts_with("job done: SUCCESS  echo  bob@chorus  0.10"),
        "{heard}"
    );
    assert!(!heard.contains('{'), "{heard}");
}

/// The words of each line of a timeline after its time.
fn timeline_words(shown: &str) -> Vec<Vec<&str>> {
    let lines = shown.lines().filter(|line| line.starts_with("    20"));
    lines
        .map(|line| line.split_whitespace().skip(1).collect())
        .collect()
}

#[test]
fn a_job_shows_its_timeline_from_the_request_to_the_end() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let offering = bob.offer("echo", &[], &["cat"]);
    // Nothing was reported in between.
    let job = alice.hire("echo", "{}", &["--wait", "--json"]).ok().json();
    let id = job[0]["job_id"].as_str().unwrap();
    let shown = alice.run(&["jobs", id]).ok().out;
    let expected = [["requested", "alice@chorus"], ["done", "bob@chorus"]];
    assert_eq!(timeline_words(&shown), expected, "{shown}");
    drop(offering);
    let _lingers = bob.offer("lingers", &[], &["tail", "-f", "/dev/null"]);
    let job = alice.hire("lingers", "{}", &["--json"]).ok().json();
    let id = job[0]["job_id"].as_str().unwrap();
    bob.run(&["jobs", id, "--progress", "half"]).ok();
    let pending = alice.run(&["jobs", id]).ok().out;
    let half = vec!["progress", "bob@chorus", "half"];
    assert_eq!(
        timeline_words(&pending)[1..],
        [half.clone(), vec!["deadline", "bob@chorus", "dispatched"]],
        "{pending}"
    );
    alice.run(&["jobs", id, "--cancel"]).ok();
    let cancelled = alice.run(&["jobs", id]).ok().out;
    let end = vec!["cancelled", "alice@chorus", "CANCELLED"];
    assert_eq!(timeline_words(&cancelled)[1..], [half, end], "{cancelled}");
}

// JOB-30: what a worker writes to standard error is its own, unless it says otherwise
#[test]
fn the_requester_learns_why_a_command_failed_only_where_the_worker_shares_it() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let script = "echo reading >&2; echo 'no such model' >&2; echo >&2; exit 3";
    for (skill, more, is_shared) in [
        ("private", &[][..], false),
        ("open", &["--share-errors"][..], true),
    ] {
        let log = bob.home.join(skill);
        let args = [
            &["offer", skill, "--cost", "0.10", "--count", "1"],
            more,
            &["--", "sh", "-c", script],
        ]
        .concat();
        let log_file = std::fs::File::create(&log).unwrap();
        let mut offering =
            crate::actors::RunningProcess::start_with_log(bob.command(&args), log_file);
        bob.wait_for_skill(skill, true);
        let failed = alice.hire(skill, "{}", &["--wait"]);
        assert_eq!(failed.code, 4, "{failed:?}");
        assert!(failed.err.contains("exit status: 3"), "{failed:?}");
        assert_eq!(
            failed.err.contains("no such model"),
            is_shared,
            "{failed:?}"
        );
        assert!(!failed.err.contains("reading"), "{failed:?}");
        assert_eq!(offering.await_exit(), Some(0));
        // The worker sees all of it either way.
        let text = std::fs::read_to_string(&log).unwrap();
        assert!(
            text.contains("reading") && text.contains("no such model"),
            "{text}"
        );
    }
}

// R-88: description, schemas and record in both listings
#[test]
fn skills_show_what_they_take_and_give() {
    let scene = Scene::open();
    let bob = scene.agent("bob");
    let endpoint = "http://127.0.0.1:9/work";
    let carol = scene.newcomer("carol");
    let register = [
        "register",
        "carol",
        "--culture",
        "en",
        "--api-endpoint",
        endpoint,
    ];
    carol.run(&register).ok();
    std::fs::write(bob.home.join("in.json"), r#"{"text": "string"}"#).unwrap();
    std::fs::write(bob.home.join("out.json"), r#"{"words": "list"}"#).unwrap();
    let options = [
        "--input-schema",
        "in.json",
        "--output-schema",
        "out.json",
        "--description",
        "Counts words",
    ];
    let _offering = bob.offer("count", &options, &["cat"]);
    for args in [&["skills"][..], &["skills", "count"]] {
        let listed = bob.run(args).ok().out;
        for text in [
            "Counts words",
            r#"input:  {"text":"string"}"#,
            r#"output: {"words":"list"}"#,
        ] {
            assert!(listed.contains(text), "{text}: {listed}");
        }
    }
    // R-61: an endpoint at registration is where the agent takes its jobs.
    let _other = carol.offer("walk", &[], &["cat"]);
    let found = bob.json(&["skills", "walk"]).remove(0);
    assert_eq!(found["api_endpoint"], endpoint);
}
