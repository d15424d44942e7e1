//! `chorus init` from a cache of npx or uvx copies the program first (PKG-10).

use crate::actors::{Agent, CommandOutput, Scene, run};
use std::path::Path;

/// The program as npx or uvx have it: in a cache below the home.
fn run_cached(agent: &Agent, cached: &Path, args: &[&str]) -> CommandOutput {
    let mut command = std::process::Command::new(cached);
    let planned = agent.command(args);
    command
        .args(planned.get_args())
        .env_clear()
        .current_dir(&agent.home);
    for (name, value) in planned.get_envs() {
        command.env(name, value.unwrap());
    }
    run(command, "")
}

// PKG-10, R-33: the folder that will have the key is made by the copy.
#[test]
fn the_first_folder_of_a_copied_program_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let folder = alice.home.join(".chorus");
    std::fs::remove_dir_all(&folder).unwrap();
    let cached = alice.home.join(".cache/chorus");
    std::fs::create_dir_all(cached.parent().unwrap()).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_chorus"), &cached).unwrap();
    run_cached(&alice, &cached, &["init", "--target", "cursor"]).ok();
    assert!(folder.join("bin/chorus").exists());
    let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

// PKG-10
#[test]
fn a_program_in_a_cache_is_copied_before_hosts_are_told_to_run_it() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::open();
    let caches = [
        (".npm/_npx/0a1b/node_modules/.bin", "claude-user"),
        (".cache/uv/archive-v0/0a1b/bin", "codex"),
    ];
    let alice = scene.agent("alice");
    let copy = alice.home.join(".chorus/bin/chorus");
    for (folder, target) in caches {
        let cached = alice.home.join(folder).join("chorus");
        std::fs::create_dir_all(cached.parent().unwrap()).unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_chorus"), &cached).unwrap();
        let told = run_cached(&alice, &cached, &["init", "--target", target]).ok();
        assert!(
            told.out.contains("✓ The host runs ~/.chorus/bin/chorus\n"),
            "{told:?}"
        );
        let mode = std::fs::metadata(&copy).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
        std::fs::remove_file(&cached).unwrap();
        alice.run(&["verify", "--target", target]).ok();
    }
    let read_text = |path: &str| std::fs::read_to_string(alice.home.join(path)).unwrap();
    let claude = read_text(".claude.json") + &read_text(".claude/settings.json");
    let codex = read_text(".codex/config.toml") + &read_text(".codex/hooks.json");
    for files in [claude, codex] {
        assert!(files.contains(copy.to_str().unwrap()), "{files}");
        assert!(
            !files.contains("_npx") && !files.contains("archive-v0"),
            "{files}"
        );
    }
    // The copy stays as long as a host runs it.
    let first = alice.run(&["uninstall", "--target", "codex"]).ok();
    assert!(
        copy.exists() && !first.out.contains("no host runs it"),
        "{first:?}"
    );
    let last = alice.run(&["uninstall", "--target", "claude-user"]).ok();
    assert!(
        last.out.contains("removed, since no host runs it any more"),
        "{last:?}"
    );
    assert!(!copy.parent().unwrap().exists());
}
