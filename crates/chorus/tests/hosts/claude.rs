//! Claude Code with what `chorus init` gives it, and with the hub's own URL.

use crate::actors::{Agent, Ended, Scene};
use crate::kit::{Kit, alone, run};
use crate::model::{Call, Model};
use serde_json::{Value, json};

fn key_of(agent: &Agent) -> String {
    let config = std::fs::read_to_string(agent.home.join(".chorus/config.json")).unwrap();
    serde_json::from_str::<Value>(&config).unwrap()["api_key"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn claude(kit: &Kit, agent: &Agent, model: &Model, words: &[&str]) -> Ended {
    let mut command = kit.claude();
    alone(&mut command, &agent.home);
    command
        .env("ANTHROPIC_BASE_URL", &model.url)
        .env("ANTHROPIC_API_KEY", "no-key-at-all");
    // Every tool is named to the model at once, since a script does not search.
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
        .args(words);
    run(command).ok()
}

fn tool(name: &'static str, input: Value) -> Call {
    (name, input)
}

#[test]
fn claude_code_calls_our_tools_over_standard_input_and_output_and_runs_our_hooks() {
    let Some(kit) = Kit::fetched() else { return };
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
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
    let results = model.results();
    assert_eq!(results.len(), 4, "{results:?}");
    assert!(
        results[0].contains("queued") && results[1].contains("bob@chorus"),
        "{results:?}"
    );
    assert!(
        model.heard().contains("bob@chorus (de): guten Morgen"),
        "the hook told of the mail"
    );
    assert!(
        !model.heard().contains(&key_of(&alice)),
        "no key reaches a model"
    );
    assert_eq!(
        bob.json(&["history", "--remote"]).len(),
        2,
        "what the tool sent arrived"
    );
    assert_eq!(
        alice.file("bob@chorus").len(),
        2,
        "and both are in the local history"
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
    let (edit, rest) = (&watched[0]["frame"], &watched[1]["frame"]);
    assert_eq!(
        edit["payload"]["advisory_text"], "edited notes.md",
        "{watched:?}"
    );
    assert_eq!(rest["payload"]["advisory_text"], "resting", "{watched:?}");
    assert_eq!(
        edit["provenance_basis"], rest["provenance_basis"],
        "hooks and tools are one session"
    );
}

#[test]
fn claude_code_calls_the_hub_itself_with_a_key() {
    let Some(kit) = Kit::fetched() else { return };
    let scene = Scene::open();
    let (alice, bob) = (scene.agent("alice"), scene.agent("bob"));
    bob.run(&["send", "alice@chorus", "guten Morgen"]).ok();
    let server = json!({ "type": "http", "url": format!("{}/mcp", scene.hub.url),
        "headers": { "Authorization": format!("Bearer {}", key_of(&alice)) } });
    let config = json!({ "mcpServers": { "chorus": server } }).to_string();
    let model = Model::with_script(vec![tool("mcp__chorus__chorus_inbox", json!({}))]);
    claude(
        &kit,
        &alice,
        &model,
        &["--strict-mcp-config", "--mcp-config", &config],
    );
    let results = model.results();
    assert!(
        results.len() == 1 && results[0].contains("guten Morgen"),
        "{results:?}"
    );
}
