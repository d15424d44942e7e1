//! What lets a host be woken: installed by `init`, known to `verify` and `uninstall`, and one waker beside a plugin (D-115).

use crate::actors::{Agent, RunningProcess, Scene, on_terminal, run};
use serde_json::{Value, json};

fn settings_path(agent: &Agent) -> std::path::PathBuf {
    agent.home.join(".claude/settings.json")
}

/// The hooks of the settings that wake, with their events.
fn wake_hooks(agent: &Agent) -> Vec<(String, Value)> {
    let text = std::fs::read_to_string(settings_path(agent)).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    let mut found = Vec::new();
    for (event, groups) in settings["hooks"].as_object().into_iter().flatten() {
        let groups = groups.as_array().unwrap().iter();
        let hooks = groups.flat_map(|group| group["hooks"].as_array().unwrap());
        let wakes = hooks.filter(|hook| hook["command"].as_str().unwrap().contains(" wake "));
        found.extend(wakes.map(|hook| (event.clone(), hook.clone())));
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

/// A waker of an attended session, started by `starter`.
fn wake_from(agent: &Agent, starter: &str) -> std::process::Command {
    let mut command = agent.command(&["wake", "--once", "--from", starter, "--session", "s1"]);
    command.env("CLAUDE_CODE_SESSION_ATTENDED", "1");
    command
}

// WAK-11
#[test]
fn init_lets_claude_code_be_woken_and_uninstall_takes_it_back() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let init = ["init", "--target", "claude-user"];
    alice.run(&init).ok();
    let hooks = wake_hooks(&alice);
    let events: Vec<&str> = hooks.iter().map(|(event, _)| event.as_str()).collect();
    assert_eq!(events, ["SessionStart", "Stop"]);
    for (_, hook) in &hooks {
        assert_eq!(hook["asyncRewake"], true, "{hook}");
        assert_eq!(hook["timeout"], 86_400, "{hook}");
        let command = hook["command"].as_str().unwrap();
        assert!(
            command.contains(" wake --once --from init --credentials "),
            "{command}"
        );
    }
    let installed = std::fs::read_to_string(settings_path(&alice)).unwrap();
    alice.run(&init).ok();
    assert_eq!(
        std::fs::read_to_string(settings_path(&alice)).unwrap(),
        installed
    );
    let verify = ["verify", "--target", "claude-user"];
    let found = alice.run(&verify).ok().out;
    assert!(
        found.contains("waking: mail wakes idle sessions"),
        "{found}"
    );

    // Where init was used, the plugin's waker does nothing.
    let yielded = run(wake_from(&alice, "plugin"), "{}").ok();
    assert_eq!((yielded.out, yielded.err), (String::new(), String::new()));
    let waker = RunningProcess::start(wake_from(&alice, "init"));
    alice.await_online("alice@chorus");
    // R-82: others see that a message wakes it, until the waker ends.
    let reach = || alice.json(&["discover"])[0]["reach"].clone();
    assert_eq!(reach(), "wakes");
    let listed = alice.run(&["discover"]).ok().out;
    assert!(listed.contains("online  wakes"), "{listed}");
    drop(waker);
    let deadline = std::time::Instant::now() + crate::actors::TIMEOUT;
    while reach() != "mail" {
        assert!(std::time::Instant::now() < deadline, "it is still reached");
    }

    let broken = installed.replacen(" wake --once", " sleep --once", 1);
    std::fs::write(settings_path(&alice), broken).unwrap();
    let found = alice.run(&verify);
    assert!(
        found.code == 1 && found.out.contains("✗ waking"),
        "{found:?}"
    );
    std::fs::write(settings_path(&alice), &installed).unwrap();

    alice.run(&[&init[..], &["--no-wake"]].concat()).ok();
    assert_eq!(wake_hooks(&alice), []);
    assert!(alice.run(&verify).ok().out.contains("waking: off"));
    alice.run(&init).ok();
    alice.run(&["uninstall", "--target", "claude-user"]).ok();
    assert!(!settings_path(&alice).exists());
}

// WAK-11: never two wakers
#[test]
fn beside_an_enabled_plugin_init_adds_no_waker() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    std::fs::create_dir_all(alice.home.join(".claude")).unwrap();
    let settings = json!({ "enabledPlugins": { "chorus@chorus": true, "other@x": true } });
    std::fs::write(settings_path(&alice), settings.to_string()).unwrap();
    alice.run(&["init", "--target", "claude-user"]).ok();
    assert_eq!(wake_hooks(&alice), []);
    let found = alice.run(&["verify", "--target", "claude-user"]).ok().out;
    assert!(found.contains("by the plugin"), "{found}");
    let waker = RunningProcess::start(wake_from(&alice, "plugin"));
    alice.await_online("alice@chorus");
    drop(waker);
}

// WAK-12: off unless asked for
#[test]
fn init_lets_codex_be_woken_only_when_asked() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let config = || std::fs::read_to_string(alice.home.join(".codex/config.toml")).unwrap();
    let init = |option: &[&str]| {
        let args = [&["init", "--target", "codex"], option].concat();
        alice.run(&args).ok();
        config().contains("\"--wake\"")
    };
    assert!(!init(&[]));
    assert!(init(&["--wake"]), "{}", config());
    assert!(init(&[]), "what was asked for stays");
    let found = alice.run(&["verify", "--target", "codex"]).ok().out;
    assert!(found.contains("waking: mail wakes"), "{found}");
    assert!(!init(&["--no-wake"]));
    let refused = alice.run(&["init", "--target", "cursor", "--wake"]);
    assert_eq!(refused.code, 1, "{refused:?}");
}

// WAK-15
#[test]
fn a_rehearsal_says_why_no_session_was_shown_the_message() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice
        .run(&["init", "--target", "claude-user", "--no-wake"])
        .ok();
    for (target, reason) in [
        (
            "claude-user",
            "mail does not wake its sessions; run: chorus init --target claude-user",
        ),
        ("cursor", "nothing wakes an idle Cursor"),
    ] {
        alice.run(&["init", "--target", target, "--no-wake"]).ok();
        let ended = alice.run(&["verify", "--target", target, "--wake"]);
        assert_eq!(ended.code, 3, "{ended:?}");
        assert!(ended.out.contains(reason), "{ended:?}");
    }
    alice.run(&["init", "--target", "claude-user"]).ok();
    let mut command = wake_from(&alice, "init");
    command.stderr(std::process::Stdio::null());
    let waker = RunningProcess::start(command);
    alice.await_online("alice@chorus");
    let ended = alice
        .run(&["verify", "--target", "claude-user", "--wake"])
        .ok();
    assert!(
        ended.out.contains("✓ wake: shown to a session after "),
        "{ended:?}"
    );
    // A person who waits for it sees the time: no waker runs now.
    drop(waker);
    let verify = alice.command(&["verify", "--target", "claude-user", "--wake"]);
    let waiting = RunningProcess::start(on_terminal(&verify));
    let line = waiting.next_line();
    assert!(line.contains("Ctrl-C stops waiting"), "{line}");
    run(
        alice.command(&["hook", "SessionStart"]),
        r#"{"session_id":"s2"}"#,
    )
    .ok();
    let told = waiting.remaining_lines().join("\n");
    assert!(told.contains("waiting until it is shown, "), "{told}");
    assert!(told.contains("shown to a session after "), "{told}");
}
