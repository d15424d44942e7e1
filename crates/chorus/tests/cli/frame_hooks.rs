//! docs/coding-agents.md: runs the hooks of the page as an editor runs them.

use crate::actors::{Agent, CommandOutput, Scene, run};
use serde_json::{Value, json};
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/coding-agents.md");

/// The command of a hook in the page's settings.
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

/// Runs a shell command with the binary on the path and the editor's input on standard input.
pub fn shell(agent: &Agent, script: &str, input: &Value) -> CommandOutput {
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
    run(command, &input.to_string())
}

pub fn edit_input(agent: &Agent, session: &str) -> Value {
    let file = agent.home.join("shop/src/auth.rs");
    json!({ "session_id": session, "cwd": agent.home.join("shop"), "hook_event_name": "PreToolUse", "tool_name": "Edit",
        "tool_input": { "file_path": file, "old_string": "a", "new_string": "b" } })
}

pub fn create_repository(agent: &Agent) {
    let shop = agent.home.join("shop");
    std::fs::create_dir_all(shop.join(".git")).unwrap();
    std::fs::create_dir_all(shop.join("src")).unwrap();
    std::fs::write(shop.join(".git/HEAD"), "ref: refs/heads/auth\n").unwrap();
    std::fs::write(shop.join("src/auth.rs"), "").unwrap();
}

#[test]
fn an_edit_is_announced_to_other_sessions() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    create_repository(&alice);
    shell(&alice, &hook("PostToolUse"), &edit_input(&alice, "7f3a")).ok();
    let frame = alice.kept_frames(1).remove(0);
    assert_eq!(frame["provenance_basis"], "session:cc-claude@7f3a");
    assert_eq!(frame["payload"]["advisory_text"], "edited src/auth.rs");
    assert_eq!(frame["payload"]["file_refs"], json!(["src/auth.rs"]));
    assert_eq!(frame["payload"]["branch"], "auth");
}

#[test]
fn an_edit_of_a_claimed_file_needs_confirmation() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    create_repository(&alice);
    let before = hook("PreToolUse");
    assert_eq!(
        shell(&alice, &before, &edit_input(&alice, "91bc")).ok().out,
        "",
        "no session claims it"
    );
    // The shell of the first agent: the SessionStart hook has exported its session.
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
        shell(&alice, &before, &edit_input(&alice, "7f3a")).ok().out,
        "",
        "its own claim"
    );
    let answer: Value =
        serde_json::from_str(&shell(&alice, &before, &edit_input(&alice, "91bc")).ok().out)
            .unwrap();
    let decision = &answer["hookSpecificOutput"];
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
fn a_hook_never_blocks_an_edit_when_it_fails() {
    let scene = Scene::open();
    let unregistered = scene.newcomer("stranger");
    let alice = scene.agent("alice");
    create_repository(&unregistered);
    create_repository(&alice);
    let unreachable = alice.while_hub_is_away();
    for event in ["PreToolUse", "PostToolUse"] {
        for agent in [&unregistered, &unreachable] {
            let ended = shell(agent, &hook(event), &edit_input(agent, "7f3a")).ok();
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

/// A repository of git with the page's pre-commit hook, and a new file that is staged.
fn create_hooked_repository(agent: &Agent) {
    let hook = PAGE
        .split("```sh\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let script = "git init -q repo && cd repo && mkdir -p src && echo x > src/auth.rs && git add src && \
        cat > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit";
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .env("HOME", &agent.home)
        .current_dir(&agent.home);
    run(command, hook).ok();
}

#[test]
fn the_git_hook_refuses_a_claimed_file_and_nothing_when_the_hub_is_away() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    create_hooked_repository(&alice);
    let in_repository = |agent: &Agent, session: &str, command: &str| {
        let script = format!("cd repo && export CHORUS_SESSION={session} && {command}");
        shell(agent, &script, &json!({}))
    };
    let commit =
        "git -c user.name=a -c user.email=a@example.com commit -q --allow-empty-message -m ''";
    in_repository(&alice, "7f3a", "chorus lock src/auth.rs").ok();
    let refused = in_repository(&alice, "91bc", commit);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(
        refused.err.contains("src/auth.rs") || refused.out.contains("src/auth.rs"),
        "{refused:?}"
    );
    let unreachable = alice.while_hub_is_away();
    let passed = in_repository(&unreachable, "91bc", commit).ok();
    assert!(passed.err.contains("cannot reach"), "{passed:?}");
    std::fs::write(alice.home.join("repo/src/auth.rs"), "y").unwrap();
    in_repository(&alice, "7f3a", &format!("git add src && {commit}")).ok();
}
