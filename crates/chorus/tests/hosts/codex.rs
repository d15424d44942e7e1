//! Codex, set up by `chorus init` or with the hub's `/mcp` URL.

use crate::actors::{Agent, CommandOutput, Scene};
use crate::kit::{HostKit, isolate, read_key, run};
use crate::model::Model;
use serde_json::json;

/// Configures the scripted model, without update checks and analytics.
pub fn configure(agent: &Agent, model: &Model) {
    let text = format!(
        "model = \"scripted\"\nmodel_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\n[analytics]\nenabled = \
         false\n\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{}/v1\"\nwire_api = \
         \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n",
        model.url
    );
    std::fs::create_dir_all(agent.home.join(".codex")).unwrap();
    std::fs::write(agent.home.join(".codex/config.toml"), text).unwrap();
}

fn codex(kit: &HostKit, agent: &Agent, args: &[&str]) -> CommandOutput {
    let mut command = kit.script("@openai/codex/bin/codex.js");
    isolate(&mut command, &agent.home);
    command
        .env("CHORUS_KEY", read_key(agent))
        .args(["exec", "--skip-git-repo-check", "--json"]);
    // No user can approve a call.
    command
        .args([
            "-c",
            "mcp_servers.chorus.default_tools_approval_mode=\"approve\"",
        ])
        .args(args)
        .arg("go on");
    run(command).ok()
}

#[test]
fn codex_calls_our_tools_over_stdio_and_runs_our_hooks() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    let model = Model::with_script(vec![
        (
            "mcp__chorus__chorus_send",
            json!({ "receiver_id": "bob@chorus", "text": "Good morning to you" }),
        ),
        ("mcp__chorus__chorus_discover", json!({})),
    ]);
    configure(&alice, &model);
    alice.run(&["init", "--target", "codex"]).ok();
    bob.run(&["send", "alice@chorus", "guten Morgen", "--culture", "de"])
        .ok();
    // A user would trust the new hooks once, by hand.
    codex(&kit, &alice, &["--dangerously-bypass-hook-trust"]);
    let results = model.tool_results();
    assert_eq!(results.len(), 2, "{results:?}");
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
    assert_eq!(alice.history_lines("bob@chorus").len(), 2);
}

#[test]
fn codex_calls_the_hub_over_http_with_a_key() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let bob = scene.agent("bob");
    bob.run(&["send", "alice@chorus", "guten Morgen"]).ok();
    let model = Model::with_script(vec![("mcp__chorus__chorus_inbox", json!({}))]);
    configure(&alice, &model);
    let url = format!("mcp_servers.chorus.url=\"{}/mcp\"", scene.hub.url);
    codex(
        &kit,
        &alice,
        &[
            "-c",
            &url,
            "-c",
            "mcp_servers.chorus.bearer_token_env_var=\"CHORUS_KEY\"",
        ],
    );
    let results = model.tool_results();
    assert!(
        results.len() == 1 && results[0].contains("guten Morgen"),
        "{results:?}"
    );
}
