//! docs/frame.md: runs every command, and compares the sent frame with the example.

use crate::actors::{Agent, Scene, run};
use chorus_wire::frame::{Frame, FrameKind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/frame.md");

/// A section of the page: a frame kind, its command and its JSON.
struct Example {
    kind: String,
    command: String,
    expected: Value,
    text: String,
}

fn examples() -> Vec<Example> {
    let block = |section: &str, fence: &str| {
        let rest = section
            .split(fence)
            .nth(1)
            .unwrap_or_else(|| panic!("no {fence} in {section}"));
        rest.split("```").next().unwrap().trim().to_owned()
    };
    let sections = PAGE.split("\n### `").skip(1);
    let example = |section: &str| {
        let text = block(section, "```json\n");
        Example {
            kind: section.split('`').next().unwrap().to_owned(),
            command: block(section, "```console\n")
                .strip_prefix("$ ")
                .unwrap()
                .to_owned(),
            expected: serde_json::from_str(&text).unwrap(),
            text,
        }
    };
    sections.map(example).collect()
}

fn shell(agent: &Agent, script: &str, ids: &BTreeMap<&str, String>) {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_chorus"))
        .parent()
        .unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .env_clear()
        .env("PATH", path)
        .env("HOME", &agent.home)
        .current_dir(&agent.home);
    command
        .env("CHORUS_HUB", &agent.hub)
        .env("CHORUS_SESSION", "s1")
        // FRM-15: the page shows what a person at a terminal sends.
        .env("CHORUS_COMPUTE", "local-only")
        .envs(ids);
    let output = run(command, "");
    // R-83: a question that no session answers ends with its own code.
    let expected = i32::from(script.contains("chorus ask")) * 5;
    assert_eq!(output.code, expected, "{output:?}");
}

/// Replaces ids and times, which differ from run to run.
fn without_ids_and_times(mut value: Value) -> Value {
    if let Value::Object(fields) = &mut value {
        for (name, field) in fields {
            let is_id = matches!(
                name.as_str(),
                "frame_id" | "lease_id" | "query_id" | "diagnostic_id" | "intent_ref"
            );
            let is_variable = is_id || name == "responded_to_frame_id" || name.ends_with("_at");
            *field = if is_variable {
                "…".into()
            } else {
                without_ids_and_times(field.take())
            };
        }
    }
    value
}

// FRM-21
#[test]
fn every_kind_is_sent_by_its_command_and_equals_its_example() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let examples = examples();
    let kinds: Vec<&str> = examples
        .iter()
        .map(|example| example.kind.as_str())
        .collect();
    let mut sorted = kinds.clone();
    let mut all = FrameKind::TEXTS.to_vec();
    sorted.sort_unstable();
    all.sort_unstable();
    assert_eq!(sorted, all);
    let mut ids = BTreeMap::new();
    for (index, example) in examples.iter().enumerate() {
        if example.kind == "agent_binding_moment" {
            std::fs::write(
                alice.home.join("moment.json"),
                example.expected["payload"].to_string(),
            )
            .unwrap();
        }
        shell(&alice, &example.command, &ids);
        let frame = alice.kept_frames_for("s1", index + 1).pop().unwrap();
        let mut sent = frame.clone();
        if example.expected.get("frame_id").is_none() {
            sent = serde_json::json!({ "kind": frame["kind"], "payload": frame["payload"] });
        }
        assert_eq!(
            without_ids_and_times(sent),
            without_ids_and_times(example.expected.clone()),
            "{}",
            example.command
        );
        let payload = &frame["payload"];
        let id_fields = [
            ("LEASE_ID", "lease_id"),
            ("QUERY_ID", "query_id"),
            ("DIAGNOSTIC_ID", "diagnostic_id"),
        ];
        for (variable, field) in id_fields {
            if let Some(id) = payload[field].as_str() {
                ids.insert(variable, id.to_owned());
            }
        }
        ids.insert("FRAME_ID", frame["frame_id"].as_str().unwrap().to_owned());
    }
    assert!(
        Frame::parse(&examples[0].text).is_ok(),
        "the complete example is a valid frame"
    );
}
