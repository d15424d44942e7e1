//! The plugin folder: written from what `init` installs, found by its launcher, and quiet beside `init` (PLG-01…08).

use crate::actors::{Agent, Scene, run};
use crate::mcp::Host;
use crate::servers::is_available;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// Every file below a folder, by its path within it.
fn read_files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), text);
            }
        }
    }
    found
}

fn read_json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The commands in a list of hooks, with their events.
fn hook_lines(hooks: &Value) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for (event, groups) in hooks["hooks"].as_object().unwrap() {
        for group in groups.as_array().unwrap() {
            for hook in group["hooks"].as_array().unwrap() {
                let command = hook["command"].as_str().unwrap();
                lines.push((event.clone(), command.to_owned()));
            }
        }
    }
    lines
}

// PLG-01
#[test]
fn the_committed_plugin_is_what_init_writes() {
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let folder = alice.home.join("chorus-plugin");
    let write = ["init", "--target", "plugin", "chorus-plugin"];
    alice.run(&write).ok();
    let written = read_files(&folder);
    let committed = read_files(&repository().join("plugins/chorus"));
    for (path, text) in &written {
        let kept = committed.get(path);
        assert!(
            kept == Some(text),
            "{} differs; run: chorus init --target plugin plugins/chorus",
            path.display()
        );
    }
    assert_eq!(committed.len(), written.len());
    for launcher in [&folder, &repository().join("plugins/chorus")] {
        let mode = std::fs::metadata(launcher.join("bin/chorus")).unwrap();
        assert_eq!(mode.permissions().mode() & 0o111, 0o111);
    }
    alice.run(&write).ok();
    assert_eq!(read_files(&folder), written, "a second run changes nothing");
    // Nothing of others is overwritten.
    std::fs::create_dir(alice.home.join("theirs")).unwrap();
    std::fs::write(alice.home.join("theirs/README.md"), "mine").unwrap();
    let refused = alice.run(&["init", "--target", "plugin", "theirs"]);
    assert!(
        refused.code == 1 && refused.err.contains("not our plugin"),
        "{refused:?}"
    );
    assert_eq!(alice.run(&["init", "--target", "plugin"]).code, 1);
    assert_eq!(alice.run(&["init", "--target", "codex", "x"]).code, 1);
}

// PLG-01, PLG-03, PLG-04: what closed schemas and validators ask for
#[test]
fn the_manifests_name_one_version_and_one_folder() {
    let root = repository();
    let plugin = root.join("plugins/chorus");
    for manifest in [
        "plugin.json",
        ".claude-plugin/plugin.json",
        ".codex-plugin/plugin.json",
    ] {
        let manifest = read_json(&plugin.join(manifest));
        assert_eq!(manifest["name"], "chorus");
        assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    }
    let command = &read_json(&plugin.join("mcp.json"))["mcpServers"]["chorus"]["command"];
    assert_eq!(command, "./bin/chorus");
    let source = &read_json(&root.join(".claude-plugin/marketplace.json"))["plugins"][0]["source"];
    assert_eq!(source, "./plugins/chorus");
    let source = &read_json(&root.join(".agents/plugins/marketplace.json"))["plugins"][0]["source"];
    assert_eq!(
        source,
        &json!({"source": "local", "path": "./plugins/chorus"})
    );
    let skill = std::fs::read_to_string(plugin.join("skills/chorus/SKILL.md")).unwrap();
    let front = skill.split("---\n").nth(1).unwrap();
    let keys: Vec<&str> = front
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(keys, ["name", "description", "metadata"]);
    assert!(front.contains("Use when"), "{front}");
}

// PLG-02
#[test]
fn the_launcher_runs_the_first_program_that_it_finds() {
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let launcher = repository().join("plugins/chorus/bin/chorus");
    let text = std::fs::read_to_string(&launcher).unwrap();
    assert!(text.lines().count() <= 30);
    let place = |folder: &str, name: &str, says: &str| {
        let folder = alice.home.join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let program = folder.join(name);
        std::fs::write(&program, format!("#!/bin/sh\necho {says} \"$@\"\n")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        program
    };
    let said = |binary: Option<&Path>| {
        let mut command = Command::new(&launcher);
        // The plugin's own folder is on the PATH too, as some hosts have it.
        let own = launcher.parent().unwrap().display();
        let path = format!("{own}:{}/on-path:/usr/bin:/bin", alice.home.display());
        command
            .args(["mcp", "a b"])
            .env_clear()
            .env("PATH", path)
            .env("HOME", &alice.home);
        if let Some(binary) = binary {
            command.env("CHORUS_BINARY", binary);
        }
        run(command, "").ok().out.trim().to_owned()
    };
    place("on-path", "npx", "npx");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(said(None), format!("npx -y chorushub@{version} mcp a b"));
    place(".local/bin", "chorus", "local");
    assert_eq!(said(None), "local mcp a b");
    place(".chorus/bin", "chorus", "home");
    assert_eq!(said(None), "home mcp a b");
    place("on-path", "chorus", "path");
    assert_eq!(said(None), "path mcp a b");
    let named = place("elsewhere", "chorus", "named");
    assert_eq!(said(Some(&named)), "named mcp a b");
}

#[test]
fn shellcheck_finds_nothing_in_the_launcher() {
    let launcher = repository().join("plugins/chorus/bin/chorus");
    let mut command = Command::new("shellcheck");
    let checked = command.arg(&launcher).output();
    if !is_available("shellcheck", checked.is_ok()) {
        return;
    }
    let checked = checked.unwrap();
    let findings = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success(), "{findings}");
}

/// Runs a hook line of the plugin as a host does, with our program.
fn run_hook_line(agent: &Agent, line: &str, input: &str) -> crate::actors::CommandOutput {
    let mut command = Command::new("sh");
    let plugin = repository().join("plugins/chorus");
    command
        .args(["-c", line])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", &agent.home)
        .env("CHORUS_BINARY", env!("CARGO_BIN_EXE_chorus"))
        .env("CLAUDE_PLUGIN_ROOT", &plugin)
        .env("PLUGIN_ROOT", &plugin)
        .current_dir(&agent.home);
    run(command, input)
}

// PLG-05, PLG-06
#[test]
fn the_plugins_hooks_speak_once_and_only_with_an_identity() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let stranger = scene.newcomer("stranger");
    let bob = scene.agent("bob");
    bob.run(&["send", "alice@chorus", "good morning"]).ok();
    let plugin = repository().join("plugins/chorus/hooks");
    for (file, target) in [("hooks.json", "claude-user"), ("codex.json", "codex")] {
        let lines = hook_lines(&read_json(&plugin.join(file)));
        assert!(lines.len() >= 4, "{lines:?}");
        for (event, line) in &lines {
            let input = json!({"session_id": "s1", "cwd": alice.home}).to_string();
            let silent = run_hook_line(&stranger, line, &input).ok();
            assert_eq!((silent.out, silent.err), Default::default(), "{event}");
        }
        let start = &lines.iter().find(|(event, _)| event == "SessionStart");
        let start = start.unwrap().1.clone();
        alice.run(&["init", "--target", target]).ok();
        let beside = run_hook_line(&alice, &start, r#"{"session_id": "s2"}"#).ok();
        assert_eq!(beside.out, "", "init has the same hook");
        alice.run(&["uninstall", "--target", target]).ok();
        if target == "claude-user" {
            let told = run_hook_line(&alice, &start, r#"{"session_id": "s3"}"#).ok();
            assert!(told.out.contains("good morning"), "{told:?}");
        }
    }
}

// PLG-05
#[test]
fn verify_says_which_of_plugin_and_init_is_in_force() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let settings = json!({ "enabledPlugins": { "chorus@chorus": true } });
    std::fs::create_dir_all(alice.home.join(".claude")).unwrap();
    std::fs::write(
        alice.home.join(".claude/settings.json"),
        settings.to_string(),
    )
    .unwrap();
    std::fs::create_dir_all(alice.home.join(".codex")).unwrap();
    std::fs::write(
        alice.home.join(".codex/config.toml"),
        "[plugins.\"chorus@chorus\"]\nenabled = true\n",
    )
    .unwrap();
    for target in ["claude-user", "codex"] {
        let verify = ["verify", "--target", target];
        let found = alice.run(&verify).ok().out;
        assert!(found.contains("plugin: enabled, and in force"), "{found}");
        alice.run(&["init", "--target", target]).ok();
        let found = alice.run(&verify).ok().out;
        assert!(
            found.contains("the entries of chorus init are in force"),
            "{found}"
        );
    }
}

// PLG-08
#[test]
fn a_link_installs_the_tools_with_a_click() {
    use base64::prelude::{BASE64_STANDARD, Engine};
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let entry = json!({ "command": "npx", "args": ["-y", "chorushub", "mcp", "--from", "plugin"] });
    let cursor = alice.run(&["init", "--link", "cursor"]).ok().out;
    let url: url::Url = cursor.trim().parse().unwrap();
    assert!(
        cursor.starts_with("cursor://anysphere.cursor-deeplink/mcp/install?name=chorus&config="),
        "{cursor}"
    );
    let config = url.query_pairs().find(|(name, _)| name == "config");
    let config = BASE64_STANDARD
        .decode(config.unwrap().1.as_bytes())
        .unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&config).unwrap(), entry);
    let vscode = alice.run(&["init", "--link", "vscode"]).ok().out;
    let rest = vscode.trim().strip_prefix("vscode:mcp/install?").unwrap();
    let query = format!("http://x/?j={rest}").parse::<url::Url>().unwrap();
    let found: Value = serde_json::from_str(&query.query_pairs().next().unwrap().1).unwrap();
    assert_eq!(found["name"], "chorus");
    assert_eq!(found["args"], entry["args"]);
    let readme = std::fs::read_to_string(repository().join("plugins/chorus/README.md")).unwrap();
    assert!(readme.contains(cursor.trim()) && readme.contains(vscode.trim()));
}

// PLG-05, PLG-06
#[test]
fn the_plugins_tools_say_what_to_run_and_are_listed_once() {
    let scene = Scene::open();
    let stranger = scene.newcomer("stranger");
    let serve = ["mcp", "--from", "plugin"];
    let mut host = Host::start(stranger.command(&serve));
    assert!(host.tools().len() > 10);
    let called = host.call("chorus_discover", json!({}));
    assert_eq!(called["isError"], true, "{called}");
    let text = called["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("chorus register NAME@HOST"), "{text}");
    // Once its user has registered, the same process works.
    stranger
        .run(&["register", "stranger@chorus", "--culture", "en"])
        .ok();
    let called = host.call("chorus_discover", json!({}));
    assert_ne!(called["isError"], true, "{called}");
    drop(host);
    // The host is Claude Code, and init has given it the same tools.
    stranger.run(&["init", "--target", "claude-user"]).ok();
    let mut host = Host::start(stranger.command(&serve));
    assert_eq!(host.tools(), Vec::<Value>::new());
    drop(host);
    let mut host = Host::start(stranger.command(&["mcp"]));
    assert!(host.tools().len() > 10);
}

/// The tools of the plugin as Claude Code starts them, with what its user has answered.
fn start_with_options(agent: &Agent, hub: &str, name: &str) -> Host {
    let manifest = read_json(&repository().join("plugins/chorus/.claude-plugin/plugin.json"));
    let server = &manifest["mcpServers"]["chorus"];
    let args: Vec<&str> = server["args"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let mut command = agent.command(&args);
    command.env_remove("CHORUS_HUB");
    for (variable, text) in server["env"].as_object().unwrap() {
        let text = text.as_str().unwrap();
        let text = text
            .replace("${user_config.hub}", hub)
            .replace("${user_config.name}", name);
        command.env(variable, text);
    }
    Host::start(command)
}

// PLG-07
#[test]
fn the_plugin_asks_for_hub_and_name_and_keeps_the_key_to_itself() {
    let manifest = read_json(&repository().join("plugins/chorus/.claude-plugin/plugin.json"));
    let options = manifest["userConfig"].as_object().unwrap();
    assert_eq!(
        options.keys().collect::<Vec<_>>(),
        ["hub", "name"],
        "no key is asked for"
    );
    for option in options.values() {
        // Without one Claude Code does not start the tools of a user who answered nothing.
        assert_eq!(option["default"], "", "{option}");
    }
    let scene = Scene::open();
    let ada = scene.newcomer("ada");
    let key_file = ada.home.join(".chorus/config.json");
    let mut silent = start_with_options(&ada, "", "");
    assert_eq!(silent.call("chorus_discover", json!({}))["isError"], true);
    assert!(
        !key_file.exists(),
        "nothing is registered without an answer"
    );
    drop(silent);

    let mut host = start_with_options(&ada, &scene.hub.url, "ada");
    let found = host.call("chorus_discover", json!({}));
    assert_ne!(found["isError"], true, "{found}");
    let saved = read_json(&key_file);
    assert_eq!(saved["agent_id"], "ada@chorus");
    assert!(saved["api_key"].is_string());
    assert_eq!(
        std::fs::metadata(&key_file).unwrap().permissions().mode() & 0o077,
        0
    );
    drop(host);
    // Another answer later replaces no identity.
    let mut host = start_with_options(&ada, &scene.hub.url, "grace");
    host.call("chorus_discover", json!({}));
    assert_eq!(read_json(&key_file), saved);

    let eve = scene.newcomer("eve");
    let mut host = start_with_options(&eve, &scene.hub.url, "ada");
    let refused = host.call("chorus_discover", json!({}));
    assert_eq!(refused["isError"], true, "{refused}");
    let next_step = format!("chorus register OTHER-NAME --hub {}", scene.hub.url);
    for part in ["The name is taken", "ada", &next_step] {
        assert!(refused.to_string().contains(part), "{refused}");
    }
    // The hub is asked once for a name that it refuses: what was refused stays so, also when the name is free again.
    ada.run(&["unregister", "--yes"]).ok();
    let again = host.call("chorus_discover", json!({}));
    assert!(again.to_string().contains(&next_step), "{again}");
    // The same process takes the identity that its user registers.
    let register = ["register", "eve", "--culture", "en"];
    eve.run(&register).ok();
    let found = host.call("chorus_discover", json!({}));
    assert_ne!(found["isError"], true, "{found}");
}
