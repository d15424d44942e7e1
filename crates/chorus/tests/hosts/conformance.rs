//! The published conformance runner for both revisions. What it cannot find in us is in a baseline that may only shrink: an
//! entry that passes fails the run, and so does one too many.

use crate::actors::Scene;
use crate::door;
use crate::kit::{Kit, alone, run};
use serde_json::Value;
use std::path::Path;

/// The revisions, and how many entries their baselines may have. Nearly all of them need tools of the runner's own making, such
/// as `test_image_content`, which a server that does something does not have.
const REVISIONS: [(&str, usize); 2] = [("2025-11-25", 25), ("2026-07-28", 36)];

fn conforms(revision: &str, most: usize) {
    let Some(kit) = Kit::fetched() else { return };
    let baseline = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../hosts/conformance-{revision}.yml"));
    let entries = std::fs::read_to_string(&baseline)
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("  - "))
        .count();
    assert!(
        entries <= most,
        "the baseline grew from {most} to {entries}"
    );
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let config = std::fs::read_to_string(alice.home.join(".chorus/config.json")).unwrap();
    let key = serde_json::from_str::<Value>(&config).unwrap()["api_key"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut command = kit.script("@modelcontextprotocol/conformance/dist/index.js");
    alone(&mut command, &alice.home);
    command.args([
        "server",
        "--url",
        &door::open(&scene.hub.url, &key),
        "--spec-version",
        revision,
        "--suite",
        "all",
    ]);
    command.arg("--expected-failures").arg(&baseline);
    let ended = run(command);
    let summary = ended
        .out
        .split("=== SUMMARY ===")
        .last()
        .unwrap_or_default();
    assert_eq!(ended.code, 0, "{summary}\n{}", ended.err);
}

#[test]
fn the_tools_conform_to_revision_2025_11_25() {
    let (revision, most) = REVISIONS[0];
    conforms(revision, most);
}

#[test]
fn the_tools_conform_to_revision_2026_07_28() {
    let (revision, most) = REVISIONS[1];
    conforms(revision, most);
}
