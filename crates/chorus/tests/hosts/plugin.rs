//! The plugin folder in the hosts that read it (PLG-01).

use crate::actors::{Agent, Scene};
use crate::kit::{HostKit, isolate, read_key, run};
use crate::model::Model;
use crate::wake::claude_command;
use serde_json::json;
use std::path::{Path, PathBuf};

pub fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

// PLG-01, PLG-03
#[test]
fn claude_code_finds_no_fault_in_the_plugin_and_installs_it() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let root = repository();
    let claude = |args: &[&str]| {
        let mut command = kit.claude();
        isolate(&mut command, &alice.home);
        command.args(args);
        run(command).ok().out
    };
    for folder in [root.clone(), root.join("plugins/chorus")] {
        let folder = folder.display().to_string();
        let checked = claude(&["plugin", "validate", "--strict", &folder]);
        assert!(checked.contains("Validation passed"), "{checked}");
    }
    let root = root.display().to_string();
    claude(&["plugin", "install", "chorus", "--marketplace", &root]);
    let settings = std::fs::read_to_string(alice.home.join(".claude/settings.json")).unwrap();
    assert!(settings.contains("\"chorus@chorus\": true"), "{settings}");
}

/// Installs the plugin with what its user answers, and lets the model call a tool of it; the result.
fn call_with_options(kit: &HostKit, agent: &Agent, options: &[String]) -> String {
    let root = repository().display().to_string();
    let mut command = kit.claude();
    isolate(&mut command, &agent.home);
    command.args(["plugin", "install", "chorus", "--marketplace", &root]);
    for option in options {
        command.args(["--config", option]);
    }
    run(command).ok();
    let tool = "mcp__plugin_chorus_chorus__chorus_discover";
    let model = Model::with_script(vec![(tool, json!({}))]);
    let mut command = claude_command(kit, agent, &model);
    command.env_remove("CHORUS_HUB");
    command.args(["-p", "--allowedTools", tool, "--", "hi"]);
    run(command).ok();
    model.tool_results().concat()
}

// PLG-07: what the user answers reaches the tools, which register
#[test]
fn claude_code_gives_hub_and_name_of_its_user_to_the_tools() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let ada = scene.newcomer("ada");
    let options = [format!("hub={}", scene.hub.url), "name=ada".to_owned()];
    let found = call_with_options(&kit, &ada, &options);
    assert!(found.contains("ada@chorus"), "{found}");
    let settings = std::fs::read_to_string(ada.home.join(".claude/settings.json")).unwrap();
    assert!(settings.contains("\"name\": \"ada\""), "{settings}");
    assert!(
        !settings.contains(&read_key(&ada)),
        "the key is in our own file only"
    );
    // Without an answer the tools are there too.
    let found = call_with_options(&kit, &scene.agent("bob"), &[]);
    assert!(found.contains("ada@chorus"), "{found}");
    let found = call_with_options(&kit, &scene.newcomer("stranger"), &[]);
    assert!(found.contains("chorus register NAME@HOST"), "{found}");
}

// PLG-01
#[test]
fn codex_installs_the_plugin_and_finds_its_server() {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let codex = |args: &[&str]| {
        let mut command = kit.script("@openai/codex/bin/codex.js");
        isolate(&mut command, &alice.home);
        command.args(args);
        run(command).ok().out
    };
    let root = repository().display().to_string();
    codex(&["plugin", "marketplace", "add", &root]);
    codex(&["plugin", "add", "chorus@chorus"]);
    let listed = codex(&["mcp", "list"]);
    assert!(
        listed.contains("/bin/chorus ") && listed.contains("mcp --from plugin"),
        "{listed}"
    );
}
