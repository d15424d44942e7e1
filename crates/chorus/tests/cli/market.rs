//! The market commands: offers, jobs, transfers and pipelines, with real processes.

use crate::actors::{Agent, CommandOutput, RunningProcess, Scene, TIMEOUT};
use serde_json::{Value, json};
use std::time::Instant;

impl Agent {
    /// Offers a skill until the test ends; it is published when this returns.
    pub fn offer(&self, skill: &str, more: &[&str], command: &[&str]) -> RunningProcess {
        let offering = self.start_offer(skill, more, command);
        self.wait_for_skill(skill, true);
        offering
    }

    pub fn start_offer(&self, skill: &str, more: &[&str], command: &[&str]) -> RunningProcess {
        let args = [
            &["offer", skill, "--json", "--cost", "0.10"],
            more,
            &["--"],
            command,
        ]
        .concat();
        RunningProcess::start(self.command(&args))
    }

    pub fn wait_for_skill(&self, skill: &str, is_offered: bool) {
        let deadline = Instant::now() + TIMEOUT;
        while Instant::now() < deadline {
            if self
                .json(&["skills"])
                .iter()
                .any(|row| row["skill_name"] == skill)
                == is_offered
            {
                return;
            }
        }
        panic!(
            "{skill} was never {}",
            if is_offered { "offered" } else { "withdrawn" }
        );
    }

    pub fn hire(&self, skill: &str, input: &str, more: &[&str]) -> CommandOutput {
        self.run(&[&["hire", skill, "--budget", "0.15", "--input", input], more].concat())
    }

    pub fn balance(&self) -> (String, String) {
        let output = self.run(&["balance"]).ok().out;
        let (balance, held) = output.trim_end().split_once("  ").expect("two amounts");
        (balance.to_owned(), held.to_owned())
    }
}

pub fn amounts(balance: &str, held: &str) -> (String, String) {
    (balance.to_owned(), format!("{held} held"))
}

// R-62, R-64
#[test]
fn a_job_is_hired_done_and_paid() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let offering = bob.offer("echo", &["--description", "Says it again"], &["cat"]);
    let found = alice.json(&["skills", "echo"]).remove(0);
    assert_eq!(
        (&found["agent_id"], &found["skill"]["cost_per_call"]),
        (&json!("bob@chorus"), &json!(0.1))
    );
    let ended = alice.hire("echo", r#"{"text":"grüße"}"#, &["--wait"]).ok();
    assert_eq!(
        serde_json::from_str::<Value>(&ended.out).unwrap(),
        json!({"text": "grüße"})
    );
    let done = offering.json();
    assert_eq!(
        (&done["status"], &done["orchestrator_id"]),
        (&json!("SUCCESS"), &json!("alice@chorus"))
    );
    assert_eq!(
        (alice.balance(), bob.balance()),
        (amounts("99.90", "0.00"), amounts("100.10", "0.00"))
    );
    let job = alice.json(&["jobs", "--status", "success"]).remove(0);
    assert_eq!(
        (&job["execution_cost"], &job["agent_id"]),
        (&json!(0.1), &json!("bob@chorus"))
    );
    let kinds: Vec<Value> = alice
        .json(&["ledger"])
        .iter()
        .map(|posting| posting["kind"].clone())
        .collect();
    assert!(
        ["hold", "pay", "release"]
            .iter()
            .all(|kind| kinds.contains(&json!(kind))),
        "{kinds:?}"
    );
    let printed = alice.run(&["ledger"]).ok().out;
    for part in [
        "held        0.15     alice@chorus → held for alice@chorus",
        "paid        0.10     held for alice@chorus → bob@chorus",
        "given back  0.05     held for alice@chorus → alice@chorus",
        "granted     100.00   the hub → alice@chorus",
    ] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert_eq!(
        bob.json(&["ledger", "--job", job["job_id"].as_str().unwrap()])
            .len(),
        1
    );
}

// JOB-30
#[test]
fn a_failed_command_costs_nothing_and_is_reported() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let cases: [(&str, &[&str], &[&str]); 3] = [
        ("breaks", &["sh", "-c", "exit 3"], &[]),
        ("babbles", &["echo", "no json"], &[]),
        (
            "lingers",
            &["tail", "-f", "/dev/null"],
            &["--timeout", "200ms"],
        ),
    ];
    for (skill, command, more) in cases {
        let offering = bob.offer(skill, more, command);
        let ended = alice.hire(skill, "{}", &["--wait", "--json"]);
        assert_eq!(ended.code, 4, "{ended:?}");
        assert!(ended.err.contains("EXECUTION_ERROR"), "{ended:?}");
        assert_eq!(offering.json()["status"], "FAILURE");
    }
    assert_eq!(
        (alice.balance(), bob.balance()),
        (amounts("100.00", "0.00"), amounts("100.00", "0.00"))
    );
}

// JOB-27, JOB-28, R-69: no owner is charged and no command runs
#[test]
fn an_invalid_input_is_refused_before_anything_happens() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    std::fs::write(bob.home.join("input.json"), r#"{"text": "string"}"#).unwrap();
    let _offering = bob.offer(
        "echo",
        &["--input-schema", "input.json"],
        &["sh", "-c", "touch ran; cat"],
    );
    for (ended, code) in [
        (
            alice.hire("echo", r#"{"text":5}"#, &["--json"]),
            "SKILL_MISMATCH",
        ),
        (alice.hire("nothing", "{}", &["--json"]), "SKILL_MISMATCH"),
        (
            alice.run(&[
                "hire",
                "echo",
                "--input",
                r#"{"text":"a"}"#,
                "--budget",
                "0.05",
                "--json",
            ]),
            "BUDGET_INSUFFICIENT",
        ),
    ] {
        assert_eq!(
            (ended.code, ended.err.contains(code)),
            (4, true),
            "{ended:?}"
        );
    }
    for invalid_args in [
        ["--budget", "0"],
        ["--budget", "0.001"],
        ["--budget", "1e1"],
        ["--input", "{"],
        ["--deadline", "5"],
    ] {
        let ended = alice.run(&[&["hire", "echo", "--budget", "1"], &invalid_args[..]].concat());
        assert_eq!(ended.code, 1, "{ended:?}");
    }
    assert!(!bob.home.join("ran").exists());
    assert_eq!(alice.balance(), amounts("100.00", "0.00"));
}

#[test]
fn a_job_requested_while_the_worker_is_away_is_done_later() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let mut offering = bob.offer("echo", &[], &["cat"]);
    offering.send_signal("KILL");
    offering.await_exit();
    let job = alice
        .hire("echo", r#"{"text":"important"}"#, &["--json"])
        .ok()
        .json()
        .remove(0);
    assert_eq!(job["status"], "PENDING");
    assert_eq!(alice.balance(), amounts("99.85", "0.15"));
    // The job is pending, so it may be done and the offer withdrawn before a check.
    let mut restarted = bob.start_offer("echo", &["--count", "1"], &["cat"]);
    assert_eq!(restarted.json()["job_id"], job["job_id"]);
    assert_eq!(restarted.await_exit(), Some(0));
    let job = alice
        .json(&["jobs", job["job_id"].as_str().unwrap()])
        .remove(0);
    assert_eq!(
        (&job["status"], alice.balance()),
        (&json!("SUCCESS"), amounts("99.90", "0.00"))
    );
    assert_eq!(job["output_data"], json!({"text": "important"}));
}

#[test]
fn a_stopped_offer_is_withdrawn() {
    let scene = Scene::open();
    let bob = scene.agent("bob");
    let mut offering = bob.offer("echo", &[], &["cat"]);
    offering.send_signal("TERM");
    assert_eq!(offering.await_exit(), Some(0));
    bob.wait_for_skill("echo", false);
}

#[test]
fn a_job_can_be_cancelled_by_its_requester() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let _offering = bob.offer("lingers", &[], &["tail", "-f", "/dev/null"]);
    let job = alice
        .run(&["hire", "lingers", "--budget", "1", "--json"])
        .ok()
        .json()
        .remove(0);
    let id = job["job_id"].as_str().unwrap();
    assert_eq!(alice.balance(), amounts("99.00", "1.00"));
    assert_eq!(
        bob.run(&["jobs", id, "--cancel"]).code,
        4,
        "only the requester can cancel"
    );
    assert_eq!(
        alice.json(&["jobs", id, "--cancel"])[0]["state"],
        "cancelled"
    );
    assert_eq!(alice.balance(), amounts("100.00", "0.00"));
}

// R-62: the command and its child processes are killed, and the slot is free for the next job
#[test]
fn the_command_of_a_cancelled_or_expired_job_is_killed() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let lingers = r#"read -r job; case "$job" in *wait*) tail -f /dev/null & echo $! > pid.new; mv pid.new pid; wait;; esac; echo "$job""#;
    let offering = bob.offer("lingers", &[], &["sh", "-c", lingers]);
    for (final_state, more) in [
        ("cancelled", &[][..]),
        ("expired", &["--deadline", "1500ms"][..]),
    ] {
        let job = alice
            .hire("lingers", r#"{"wait":true}"#, &[more, &["--json"]].concat())
            .ok()
            .json()
            .remove(0);
        let id = job["job_id"].as_str().unwrap();
        let pid = await_file(&bob.home.join("pid"));
        if final_state == "cancelled" {
            alice.json(&["jobs", id, "--cancel"]);
        }
        await_process_end(pid.trim());
        assert_eq!(alice.json(&["jobs", id])[0]["state"], final_state);
        std::fs::remove_file(bob.home.join("pid")).unwrap();
    }
    let ended = alice.hire("lingers", r#"{"n":1}"#, &["--wait"]).ok();
    assert_eq!(ended.out.trim(), r#"{"n":1}"#);
    assert_eq!(
        offering.json()["status"],
        "SUCCESS",
        "the killed jobs report no result"
    );
}

fn await_file(path: &std::path::Path) -> String {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        if let Ok(text) = std::fs::read_to_string(path) {
            return text;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("the command never ran");
}

/// Waits until the process with this id has ended.
fn await_process_end(pid: &str) {
    let deadline = Instant::now() + TIMEOUT;
    while Instant::now() < deadline {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if status.is_empty() || status.contains(") Z ") {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{pid} does not end");
}

// R-65
#[test]
fn a_transfer_with_the_same_id_is_made_once() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    for _ in 0..2 {
        let output = alice
            .run(&["transfer", "bob@chorus", "2.50", "--id", "rent-1"])
            .ok()
            .out;
        assert_eq!(output, "paid 2.50 to bob@chorus, 97.50 left\n");
    }
    assert_eq!(
        (alice.balance(), bob.balance()),
        (amounts("97.50", "0.00"), amounts("102.50", "0.00"))
    );
    let other = alice.run(&["transfer", "bob@chorus", "3", "--id", "rent-1"]);
    assert_eq!(other.code, 4, "{other:?}");
    let broke = alice.run(&["transfer", "bob@chorus", "97.51", "--json"]);
    assert_eq!(
        (broke.code, broke.err.contains("TRANSFER_FAILED")),
        (4, true),
        "{broke:?}"
    );
    let stolen = bob.run(&["transfer", "bob@chorus", "1", "--from", "alice@chorus"]);
    assert_ne!(stolen.code, 0, "{stolen:?}");
    assert_eq!(alice.run(&["transfer", "bob@chorus", "0.001"]).code, 1);
}

#[test]
fn a_pipeline_feeds_each_output_to_the_next_step_within_one_budget() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let carol = scene.agent("carol");
    let _first = bob.offer(
        "wrap",
        &[],
        &["sh", "-c", r#"read -r line; printf '{"inner":%s}' "$line""#],
    );
    let _second = carol.offer("echo", &[], &["cat"]);
    let plan = r#"
budget = 0.20
input = { text = "hello" }

[[steps]]
skill = "wrap"

[[steps]]
skill = "echo"
input = { said = "$output.inner.text", first = "$input.text", all = "$output" }
"#;
    std::fs::write(alice.home.join("plan.toml"), plan).unwrap();
    let ended = alice.run(&["pipeline", "plan.toml"]).ok();
    let all = json!({"inner": {"text": "hello"}});
    assert_eq!(
        serde_json::from_str::<Value>(&ended.out).unwrap(),
        json!({"said": "hello", "first": "hello", "all": all})
    );
    assert_eq!(alice.balance(), amounts("99.80", "0.00"));
    // The first step leaves too little for the second, and stays paid.
    let short = alice.run(&["pipeline", "plan.toml", "--budget", "0.15", "--json"]);
    assert_eq!(
        (short.code, short.err.contains("BUDGET_INSUFFICIENT")),
        (4, true),
        "{short:?}"
    );
    assert!(short.err.contains("step 2"), "{short:?}");
    assert_eq!(
        (short.json().len(), alice.balance()),
        (1, amounts("99.70", "0.00"))
    );
    std::fs::write(alice.home.join("bad.toml"), "budget = 1\nstep = []\n").unwrap();
    assert_eq!(alice.run(&["pipeline", "bad.toml"]).code, 1);
}
