//! Claude Code, set up by `chorus init` or with the hub's `/mcp` URL.

use crate::actors::{Agent, CommandOutput, Scene};
use crate::kit::{HostKit, isolate, read_key, run};
use crate::model::{Call, Model};
use serde_json::{Value, json};

fn claude(kit: &HostKit, agent: &Agent, model: &Model, args: &[&str]) -> CommandOutput {
    let mut command = kit.claude();
    isolate(&mut command, &agent.home);
    command
        .env("ANTHROPIC_BASE_URL", &model.url)
        .env("ANTHROPIC_API_KEY", "no-key-at-all");
    // List every tool to the model at once, because the scripted model does not search.
    command
        .env("ENABLE_TOOL_SEARCH", "false")
        .env("CHORUS_HUB", &agent.hub);
    command
        .args([
            "-p",
            "go on",
            "--output-format",
            "json",
            "--allowedTools",
            "mcp__chorus",
            "Write",
        ])
        .args(args);
    run(command).ok()
}

fn tool(name: &'static str, input: Value) -> Call {
    (name, input)
}

#[test]
fn claude_code_calls_our_tools_over_stdio_and_runs_our_hooks() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    alice.run(&["init", "--target", "claude-user"]).ok();
    bob.run(&["send", "alice@chorus", "guten Morgen", "--culture", "de"])
        .ok();
    std::fs::create_dir(alice.home.join(".git")).unwrap();
    let file = alice.home.join("notes.md");
    let model = Model::with_script(vec![
        tool(
            "mcp__chorus__chorus_send",
            json!({ "receiver_id": "bob@chorus", "text": "Good morning to you" }),
        ),
        tool("mcp__chorus__chorus_discover", json!({})),
        tool("Write", json!({ "file_path": file, "content": "x" })),
        tool(
            "mcp__chorus__agent_advise",
            json!({ "advisory_text": "resting" }),
        ),
    ]);
    claude(&kit, &alice, &model, &[]);
    let results = model.tool_results();
    assert_eq!(results.len(), 4, "{results:?}");
    assert!(
        results[0].contains("queued") && results[1].contains("bob@chorus"),
        "{results:?}"
    );
    assert!(
        model
            .requests_text()
            .contains("bob@chorus (de): guten Morgen"),
        "the hook reported the mail"
    );
    assert!(
        !model.requests_text().contains(&read_key(&alice)),
        "no key reaches a model"
    );
    assert_eq!(
        bob.json(&["history", "--remote"]).len(),
        2,
        "the message of the tool arrived"
    );
    assert_eq!(
        alice.history_lines("bob@chorus").len(),
        2,
        "both messages are in the local history"
    );
    let watched = alice.json(&[
        "watch",
        "--since",
        "0",
        "--count",
        "2",
        "--session",
        "other",
    ]);
    let edit = &watched[0]["frame"];
    let rest = &watched[1]["frame"];
    assert_eq!(
        edit["payload"]["advisory_text"], "edited notes.md",
        "{watched:?}"
    );
    assert_eq!(rest["payload"]["advisory_text"], "resting", "{watched:?}");
    assert_eq!(
        edit["provenance_basis"], rest["provenance_basis"],
        "hooks and tools have the same session"
    );
}

#[test]
fn claude_code_calls_the_hub_over_http_with_a_key() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    bob.run(&["send", "alice@chorus", "guten Morgen"]).ok();
    let server = json!({ "type": "http", "url": format!("{}/mcp", scene.hub.url),
        "headers": { "Authorization": format!("Bearer {}", read_key(&alice)) } });
    let config = json!({ "mcpServers": { "chorus": server } }).to_string();
    let model = Model::with_script(vec![tool("mcp__chorus__chorus_inbox", json!({}))]);
    claude(
        &kit,
        &alice,
        &model,
        &["--strict-mcp-config", "--mcp-config", &config],
    );
    let results = model.tool_results();
    assert!(
        results.len() == 1 && results[0].contains("guten Morgen"),
        "{results:?}"
    );
}
