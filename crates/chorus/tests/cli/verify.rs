//! `chorus verify`: the envelopes and the hosts that it checks.

use crate::actors::Scene;

// Lesson 13: an argument that is not an object is a wrong envelope and not a missing file
#[test]
fn verify_tells_broken_json_and_wrong_envelopes_from_missing_files() {
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let verify = |argument: &str| alice.run(&["verify", "--envelope", argument]);
    for wrong in ["[]", "[1]", "42", "\"text\"", "null", "true", " {} "] {
        let ended = verify(wrong);
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(
            ended.out.starts_with("✗ Invalid envelope:\n  - "),
            "{ended:?}"
        );
    }
    for broken in [
        "",
        " ",
        "{",
        "[1",
        "hello",
        "{'a': 1}",
        "not json at all",
        "{\"a\":1}}",
    ] {
        let ended = verify(broken);
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.out.starts_with("✗ Invalid JSON: "), "{ended:?}");
    }
    for missing in ["missing.json", "no/such/file"] {
        let ended = verify(missing);
        assert!(
            ended.code != 0 && ended.err.contains("No such file"),
            "{ended:?}"
        );
    }
}

// Claude Code reads `.claude.json` in the folder that the variable names, whatever its value
#[test]
fn init_and_verify_follow_claude_config_dir() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let folder = alice.home.join(".claude");
    let run = |args: &[&str], folder: &str| {
        let mut command = alice.command(args);
        command.env("CLAUDE_CONFIG_DIR", folder);
        crate::actors::run(command, "")
    };
    let usual = folder.display().to_string();
    run(&["init", "--target", "claude-user"], &usual).ok();
    assert!(folder.join(".claude.json").exists());
    assert!(!alice.home.join(".claude.json").exists());
    run(&["verify", "--target", "claude-user"], &usual).ok();
    // Without the variable, Claude Code reads the file in the home.
    let unset = alice.run(&["verify", "--target", "claude-user"]);
    assert!(unset.out.contains("✗ tools: "), "{unset:?}");
    run(&["init", "--target", "claude-user"], "").ok();
    assert!(alice.home.join(".claude.json").exists());
}

// Codex runs a new hook only after its user has trusted it
#[test]
fn verify_says_that_codex_does_not_trust_the_hooks_yet() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice.run(&["init", "--target", "codex"]).ok();
    let fresh = alice.run(&["verify", "--target", "codex"]).ok().out;
    assert!(fresh.contains("not trusted yet"), "{fresh}");
    let config = alice.home.join(".codex/config.toml");
    let mut text = std::fs::read_to_string(&config).unwrap();
    let hooks = alice.home.join(".codex/hooks.json").display().to_string();
    for event in [
        "session_start",
        "user_prompt_submit",
        "stop",
        "post_tool_use",
    ] {
        text.push_str(&format!(
            "\n[hooks.state.\"{hooks}:{event}:0:0\"]\ntrusted_hash = \"sha256:0\"\n"
        ));
    }
    std::fs::write(&config, text).unwrap();
    let trusted = alice.run(&["verify", "--target", "codex"]).ok().out;
    assert!(
        trusted.contains("✓ hooks: ") && !trusted.contains("trusted"),
        "{trusted}"
    );
}

// A host is silent about a hook or a server that it cannot run
#[test]
fn verify_refuses_hooks_and_tools_whose_program_cannot_be_run() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    // Files of a project name the program without its folder.
    alice.run(&["init", "--target", "claude-project"]).ok();
    let verify = |target: &str, path: &str| {
        let mut command = alice.command(&["verify", "--target", target]);
        command.env("PATH", path);
        crate::actors::run(command, "")
    };
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_chorus"));
    let folder = program.parent().unwrap().display().to_string();
    verify("claude-project", &folder).ok();
    let absent = verify("claude-project", "/nowhere");
    assert_eq!(absent.code, 1, "{absent:?}");
    for subject in ["✗ tools: ", "✗ hooks: "] {
        let line = absent.out.lines().find(|line| line.starts_with(subject));
        assert!(
            line.is_some_and(|line| line.contains("runs chorus, which is not on the PATH")),
            "{absent:?}"
        );
    }
    // A build folder that was cleaned.
    alice.run(&["init", "--target", "claude-user"]).ok();
    for file in [".claude/settings.json", ".claude.json"] {
        let path = alice.home.join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace(&*program.to_string_lossy(), "/gone/chorus");
        assert!(text.contains("/gone/chorus"), "{text}");
        std::fs::write(path, text).unwrap();
    }
    let gone = verify("claude-user", "/nowhere");
    assert_eq!(gone.code, 1, "{gone:?}");
    assert_eq!(
        gone.out
            .matches("runs /gone/chorus, which is not there")
            .count(),
        2,
        "{gone:?}"
    );
    assert!(
        gone.out.contains("chorus init --target claude-user"),
        "{gone:?}"
    );
}
