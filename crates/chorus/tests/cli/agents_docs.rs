//! docs/agents.md: runs its commands and checks its examples.

use crate::actors::{Agent, Scene, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/agents.md");
/// Commands of hosts, which only `./test --hosts` can run.
const HOST_COMMANDS: [&str; 2] = ["claude ", "codex "];

/// The fenced blocks of a language, with the heading above them.
fn blocks(fence: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for section in PAGE.split("\n## ") {
        let heading = section.lines().next().unwrap().to_owned();
        for rest in section.split(&format!("```{fence}\n")).skip(1) {
            found.push((
                heading.clone(),
                rest.split("\n```").next().unwrap().to_owned(),
            ));
        }
    }
    found
}

fn shell(agent: &Agent, script: &str) {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_chorus"))
        .parent()
        .unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command
        .args(["-ec", script])
        .env_clear()
        .env("PATH", path)
        .env("HOME", &agent.home)
        .current_dir(&agent.home);
    run(command, "").ok();
}

#[test]
fn every_command_in_the_agents_docs_runs() {
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let mut targets = BTreeMap::new();
    for (_, script) in blocks("sh") {
        let script = script.replace("http://127.0.0.1:3000", &scene.hub.url);
        if HOST_COMMANDS.iter().any(|host| script.starts_with(host)) {
            continue;
        }
        shell(&alice, &script);
        for target in script
            .split("--target ")
            .skip(1)
            .map(|rest| rest.split_whitespace().next().unwrap())
        {
            *targets.entry(target.to_owned()).or_insert(0) += 1;
        }
    }
    let help = alice.run(&["init", "--help"]).ok().out;
    for (target, times) in &targets {
        assert!(
            help.contains(target.as_str()) && *times == 2,
            "{target}: init and verify"
        );
    }
    assert_eq!(targets.len(), 6, "{targets:?}");
}

#[test]
fn every_example_in_the_agents_docs_is_valid() {
    for (heading, text) in blocks("json") {
        let example: Value =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("{heading}: {e}"));
        assert!(
            example["mcpServers"]["chorus"]["url"]
                .as_str()
                .unwrap()
                .ends_with("/mcp"),
            "{heading}"
        );
    }
    let (_, toml) = blocks("toml").remove(0);
    let scene = Scene::open();
    let alice = scene.agent("alice");
    std::fs::create_dir_all(alice.home.join(".codex")).unwrap();
    std::fs::write(alice.home.join(".codex/config.toml"), &toml).unwrap();
    // A foreign server under our name must not be changed.
    let refused = alice.run(&["init", "--target", "codex"]);
    assert!(
        refused.code == 1 && refused.err.contains("that is not ours"),
        "{refused:?}"
    );
}
