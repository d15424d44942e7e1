//! The page on coding agents: its hooks are taken from it and run as an editor runs them.

use crate::actors::{Agent, Ended, Scene, run};
use serde_json::{Value, json};
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/coding-agents.md");

/// The command of a hook, as the settings on the page have it.
fn hook(event: &str) -> String {
    let block = PAGE
        .split("```json\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let settings: Value = serde_json::from_str(block).unwrap();
    settings["hooks"][event][0]["hooks"][0]["command"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Runs a shell command of the page in a folder, with the binary on the path and what the editor says on standard input.
fn shell(agent: &Agent, script: &str, said: &Value) -> Ended {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_chorus"))
        .parent()
        .unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .env_clear()
        .env("PATH", path)
        .env("HOME", &agent.home);
    command
        .env("CHORUS_HUB", &agent.hub)
        .env("CLAUDE_ENV_FILE", agent.home.join("env"))
        .current_dir(&agent.home);
    run(command, &said.to_string())
}

fn edit(agent: &Agent, session: &str) -> Value {
    let file = agent.home.join("shop/src/auth.rs");
    json!({ "session_id": session, "cwd": agent.home.join("shop"), "hook_event_name": "PreToolUse", "tool_name": "Edit",
        "tool_input": { "file_path": file, "old_string": "a", "new_string": "b" } })
}

fn with_repository(agent: &Agent) {
    let shop = agent.home.join("shop");
    std::fs::create_dir_all(shop.join(".git")).unwrap();
    std::fs::create_dir_all(shop.join("src")).unwrap();
    std::fs::write(shop.join(".git/HEAD"), "ref: refs/heads/auth\n").unwrap();
    std::fs::write(shop.join("src/auth.rs"), "").unwrap();
}

#[test]
fn an_edit_is_told_to_the_other_sessions() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    with_repository(&alice);
    shell(&alice, &hook("PostToolUse"), &edit(&alice, "7f3a")).ok();
    let frame = alice.kept(1).remove(0);
    assert_eq!(frame["provenance_basis"], "session:cc-claude@7f3a");
    assert_eq!(frame["payload"]["advisory_text"], "edited src/auth.rs");
    assert_eq!(frame["payload"]["file_refs"], json!(["src/auth.rs"]));
    assert_eq!(frame["payload"]["branch"], "auth");
}

#[test]
fn an_edit_of_a_claimed_file_is_asked_about_first() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    with_repository(&alice);
    let before = hook("PreToolUse");
    assert_eq!(
        shell(&alice, &before, &edit(&alice, "91bc")).ok().out,
        "",
        "nobody claims it"
    );
    // The first agent's own shell: its session was put into the environment when it began.
    shell(
        &alice,
        &hook("SessionStart"),
        &json!({ "session_id": "7f3a", "hook_event_name": "SessionStart" }),
    )
    .ok();
    let claim =
        ". $CLAUDE_ENV_FILE; cd shop; chorus lock src/auth.rs --intent 'moving the token check'";
    shell(&alice, claim, &json!({})).ok();
    assert_eq!(
        shell(&alice, &before, &edit(&alice, "7f3a")).ok().out,
        "",
        "its own claim"
    );
    let asked: Value =
        serde_json::from_str(&shell(&alice, &before, &edit(&alice, "91bc")).ok().out).unwrap();
    let decision = &asked["hookSpecificOutput"];
    assert_eq!(
        (&decision["hookEventName"], &decision["permissionDecision"]),
        (&json!("PreToolUse"), &json!("ask"))
    );
    let reason = decision["permissionDecisionReason"].as_str().unwrap();
    assert!(
        reason.starts_with("src/auth.rs is claimed by ~alice cc-claude@7f3a for "),
        "{reason}"
    );
    assert!(reason.ends_with("(moving the token check)"), "{reason}");
    let plain = "cd shop; CHORUS_SESSION=91bc chorus locks --check src/auth.rs";
    assert_eq!(shell(&alice, plain, &json!({})).code, 4);
}

#[test]
fn a_hook_never_stops_an_edit_that_it_cannot_judge() {
    let scene = Scene::open();
    let stranger = scene.newcomer("stranger");
    let alice = scene.agent("alice");
    with_repository(&stranger);
    with_repository(&alice);
    let away = Agent {
        home: alice.home.clone(),
        hub: "http://127.0.0.1:1".into(),
    };
    for event in ["PreToolUse", "PostToolUse"] {
        for agent in [&stranger, &away] {
            let ended = shell(agent, &hook(event), &edit(agent, "7f3a")).ok();
            assert!(
                ended.out.is_empty() && !ended.err.is_empty(),
                "{event}: {ended:?}"
            );
        }
        let other =
            json!({ "session_id": "7f3a", "tool_name": "Bash", "tool_input": { "command": "ls" } });
        let ended = shell(&alice, &hook(event), &other).ok();
        assert!(
            ended.out.is_empty() && ended.err.is_empty(),
            "{event}: {ended:?}"
        );
    }
}
