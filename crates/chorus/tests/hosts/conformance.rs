//! The published MCP conformance runner for both revisions. Expected failures are in a baseline that may only shrink: an
//! entry that passes fails the run, and so does an additional entry.

use crate::actors::Scene;
use crate::kit::{HostKit, isolate, read_key, run};
use crate::proxy;
use std::path::Path;

/// The revisions, and the maximum number of baseline entries. Nearly all entries need special tools of the runner, such as
/// `test_image_content`, which a real server does not have.
const REVISIONS: [(&str, usize); 2] = [("2025-11-25", 25), ("2026-07-28", 36)];

fn check_conformance(revision: &str, max_entries: usize) {
    let Some(kit) = HostKit::fetched() else {
        return;
    };
    let baseline = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../hosts/conformance-{revision}.yml"));
    let entries = std::fs::read_to_string(&baseline)
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("  - "))
        .count();
    assert!(
        entries <= max_entries,
        "the baseline grew from {max_entries} to {entries}"
    );
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let key = read_key(&alice);
    let mut command = kit.script("@modelcontextprotocol/conformance/dist/index.js");
    isolate(&mut command, &alice.home);
    command.args([
        "server",
        "--url",
        &proxy::start_proxy(&scene.hub.url, &key),
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
    let (revision, max_entries) = REVISIONS[0];
    check_conformance(revision, max_entries);
}

#[test]
fn the_tools_conform_to_revision_2026_07_28() {
    let (revision, max_entries) = REVISIONS[1];
    check_conformance(revision, max_entries);
}
