//! `chorus lock`: claims are announced, extended while a command runs, released, and respected (FRM-23…27, FRM-33, R-40).

use crate::actors::{Agent, Scene, TIMEOUT};
use crate::frame::text;
use serde_json::Value;
use std::time::Instant;

impl Agent {
    fn locks(&self) -> Vec<Value> {
        self.run_in_session("reader", &["locks"]).ok().json()
    }

    /// Waits until there are `count` claims.
    fn wait_for_locks(&self, count: usize) -> Vec<Value> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let locks = self.locks();
            if locks.len() == count {
                return locks;
            }
            assert!(Instant::now() < deadline, "{locks:?}");
        }
    }

    fn kept_kinds(&self, count: usize) -> Vec<String> {
        self.kept_frames(count)
            .iter()
            .map(|frame| text(&frame["kind"]))
            .collect()
    }
}

//
#[test]
fn a_claim_lasts_as_long_as_its_command_and_returns_its_exit_code() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let done = alice.home.join("done");
    let script = format!(
        "echo running; until [ -e {} ]; do sleep 0.1; done; exit 7",
        done.display()
    );
    // A lease of half a second, so that a later claim shows that it was extended.
    let args = [
        "lock",
        "build",
        "--ttl",
        "500ms",
        "--intent",
        "a release",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let mut command = alice.command(&args);
    command.env("CHORUS_SESSION", "s1");
    let mut holding = crate::actors::RunningProcess::start(command);
    assert_eq!(holding.next_line(), "running");
    let frames = alice.kept_frames(4);
    let lease = &frames[0]["payload"]["lease_id"];
    let claim = &frames[0]["payload"];
    assert_eq!(
        (&claim["resource"], &claim["intent"]),
        (&"build".into(), &"a release".into())
    );
    for extension in &frames[1..] {
        assert_eq!(
            (&extension["kind"], &extension["payload"]["lease_id"]),
            (&"agent_lease_extend".into(), lease)
        );
    }
    let held = alice.wait_for_locks(1);
    assert_eq!(
        (&held[0]["holder"], &held[0]["session"]),
        (&"~alice".into(), &"cli@s1".into())
    );
    std::fs::write(done, "").unwrap();
    assert_eq!(holding.await_exit(), Some(7));
    assert!(alice.locks().is_empty());
}

#[test]
fn an_interrupted_command_releases_its_claim() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        // A shell in the background ignores SIGINT, so the script traps it.
        let script =
            "trap 'exit 130' INT; trap 'exit 143' TERM; echo running; while :; do sleep 0.1; done";
        let mut holding =
            alice.start_in_session("s1", &["lock", "build", "--", "sh", "-c", script]);
        assert_eq!(holding.next_line(), "running");
        alice.wait_for_locks(1);
        holding.send_signal(signal);
        assert_eq!(holding.await_exit(), Some(code), "{signal}");
        assert!(alice.locks().is_empty(), "{signal}");
    }
}

#[test]
fn a_command_that_cannot_be_run_leaves_no_claim() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    assert_eq!(
        alice
            .run_in_session("s1", &["lock", "build", "--", "/no/such/command"])
            .code,
        1
    );
    assert!(alice.locks().is_empty());
    assert_eq!(
        alice.kept_kinds(2),
        ["agent_lock_request", "agent_lock_release"]
    );
}

// FRM-23
#[test]
fn a_claim_of_another_session_is_respected_unless_forced() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice
        .run_in_session(
            "s1",
            &["lock", "src", "--ttl", "10m", "--intent", "renaming"],
        )
        .ok();
    let refused = alice.run_in_session("s2", &["lock", "src/main.rs"]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(
        refused.err.contains("CLAIMED")
            && refused.err.contains("cli@s1")
            && refused.err.contains("renaming")
    );
    alice.run_in_session("s1", &["lock", "src/main.rs"]).ok();
    alice
        .run_in_session("s2", &["lock", "src/main.rs", "--force"])
        .ok();
    assert_eq!(alice.locks().len(), 3);
    assert_eq!(
        alice
            .run_in_session("s2", &["lock", "src", "--release"])
            .code,
        4,
        "a session can release only its own claim"
    );
    alice
        .run_in_session("s1", &["lock", "src", "--release"])
        .ok();
    assert_eq!(alice.locks().len(), 2);
    assert_eq!(
        alice
            .run_in_session("s1", &["lock", "src", "--ttl", "2h"])
            .code,
        1,
        "an hour is the maximum"
    );
}

#[test]
fn a_waiting_session_gets_the_claim_when_it_is_released() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice
        .run_in_session("s1", &["lock", "build", "--ttl", "1h"])
        .ok();
    let mut waiting =
        alice.start_in_session("s2", &["lock", "build", "--wait", "--", "echo", "mine"]);
    alice
        .run_in_session("s1", &["lock", "build", "--release"])
        .ok();
    assert_eq!(waiting.next_line(), "mine");
    assert_eq!(waiting.await_exit(), Some(0));
    // Or when it expires.
    alice
        .run_in_session("s1", &["lock", "build", "--ttl", "300ms"])
        .ok();
    let waiting = alice.start_in_session("s2", &["lock", "build", "--wait", "--", "echo", "mine"]);
    assert_eq!(waiting.next_line(), "mine");
}

#[test]
fn concurrent_claims_run_one_at_a_time() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let script = "mkdir held || exit 9; sleep 0.05; rmdir held";
    let codes: Vec<i32> = std::thread::scope(|threads| {
        let take = |n: usize| {
            alice
                .run_in_session(
                    &format!("s{n}"),
                    &["lock", "build", "--wait", "--", "sh", "-c", script],
                )
                .code
        };
        let all: Vec<_> = (1..=3).map(|n| threads.spawn(move || take(n))).collect();
        all.into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(codes, [0, 0, 0]);
}

#[test]
fn a_check_exits_with_4_if_another_session_claims_the_file() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice
        .run_in_session("s1", &["lock", "src", "--ttl", "10m"])
        .ok();
    assert_eq!(
        alice
            .run_in_session("s2", &["locks", "--check", "README.md", "src/main.rs"])
            .code,
        4
    );
    assert_eq!(
        alice
            .run_in_session("s2", &["locks", "--check", "README.md"])
            .code,
        0
    );
    assert_eq!(
        alice
            .run_in_session("s1", &["locks", "--check", "src/main.rs"])
            .code,
        0,
        "its own claim is no conflict"
    );
}

#[test]
fn following_shows_each_change_of_the_claims() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice
        .run_in_session("s1", &["lock", "a", "--ttl", "10m"])
        .ok();
    let following = alice.start_in_session("s2", &["locks", "--follow"]);
    assert_eq!(following.json()["resource"], "a");
    alice
        .run_in_session("s1", &["advise", "no claim, so nothing changes"])
        .ok();
    alice
        .run_in_session("s1", &["lock", "b", "--ttl", "10m"])
        .ok();
    let names = |change: Value| {
        change["locks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| text(&c["resource"]))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(following.json()), ["a", "b"]);
    alice.run_in_session("s1", &["lock", "a", "--release"]).ok();
    assert_eq!(names(following.json()), ["b"]);
}
