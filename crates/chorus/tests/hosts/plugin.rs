//! The plugin folder in the hosts that read it (T-05).

use crate::actors::Scene;
use crate::kit::{HostKit, isolate, run};
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
