//! What `init` gives a host, what `uninstall` takes back, and what `verify` says of it.

use crate::actors::{Agent, Ended, Scene, run};
use serde_json::{Value, json};
use std::path::Path;

const JSON_HOSTS: [(&str, &str, &str); 4] = [
    ("claude-user", ".claude.json", "/mcpServers/chorus"),
    ("claude-project", ".mcp.json", "/mcpServers/chorus"),
    ("cursor", ".cursor/mcp.json", "/mcpServers/chorus"),
    ("openclaw", ".openclaw/openclaw.json", "/mcp/servers/chorus"),
];

fn text(agent: &Agent, path: &str) -> String {
    std::fs::read_to_string(agent.home.join(path)).unwrap_or_default()
}

fn json(agent: &Agent, path: &str) -> Value {
    serde_json::from_str(&text(agent, path))
        .unwrap_or_else(|_| panic!("{path}: {}", text(agent, path)))
}

fn write(agent: &Agent, path: &str, text: &str) {
    let path = agent.home.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Every file below a folder with what is in it.
fn tree(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(tree(&path)),
            false => found.push((
                path.display().to_string(),
                std::fs::read_to_string(&path).unwrap(),
            )),
        }
    }
    found.sort();
    found
}

fn init(agent: &Agent, target: &str) -> Ended {
    agent.run(&["init", "--target", target])
}

// SKL-32, SKL-33
#[test]
fn init_says_what_it_did_in_the_words_of_the_documents() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let home = alice.home.display();
    let claude = init(&alice, "claude-user").ok().out;
    let mut lines = claude.lines();
    assert_eq!(
        lines.next().unwrap(),
        format!("✓ Files installed to {home}/.claude/skills/chorus (en)")
    );
    assert_eq!(
        lines.next().unwrap(),
        format!("✓ Local storage initialized at {home}/.chorus")
    );
    assert!(alice.home.join(".chorus/history").is_dir());
    let openclaw = alice
        .run(&["init", "--target", "openclaw", "--lang", "zh-CN"])
        .ok()
        .out;
    assert!(
        openclaw.starts_with(&format!(
            "✓ Files installed to {home}/.openclaw/skills/chorus (zh-CN)\n"
        )),
        "{openclaw}"
    );
    assert!(
        openclaw.contains("✓ Registered in ~/.openclaw/openclaw.json"),
        "{openclaw}"
    );
}

// SKL-34
#[test]
fn each_language_installs_its_own_skill_with_the_hub_in_it() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    for (lang, word) in [("en", "Two audiences"), ("zh-CN", "你的用户")] {
        alice
            .run(&["init", "--target", "local", "--lang", lang])
            .ok();
        let skill = text(&alice, "skills/chorus/SKILL.md");
        assert!(
            skill.starts_with("---\nname: chorus\n") && skill.contains(word),
            "{lang}"
        );
        assert!(
            skill.contains(&format!("{}/messages", alice.hub)) && !skill.contains("{{"),
            "{lang}"
        );
        assert!(
            text(&alice, "skills/chorus/TRANSPORT.md").contains("# How Chorus messages travel")
        );
    }
}

#[test]
fn a_host_gets_our_tools_beside_its_own_and_loses_only_ours() {
    let scene = Scene::open();
    for (target, path, pointer) in JSON_HOSTS {
        let agent = scene.agent(target);
        let before = "{\n  \"theirs\": {\"b\": 1, \"a\": [1,2]}\n}\n";
        write(&agent, path, before);
        init(&agent, target).ok();
        let after = json(&agent, path);
        let entry = after
            .pointer(pointer)
            .unwrap_or_else(|| panic!("{target}: {after}"));
        assert_eq!(entry["args"], json!(["mcp"]), "{target}");
        assert!(
            text(&agent, path).contains("\"theirs\": {\"b\": 1, \"a\": [1,2]}"),
            "{target}"
        );
        let once = tree(&agent.home);
        init(&agent, target).ok();
        assert_eq!(tree(&agent.home), once, "{target}: twice is once");
        agent.run(&["uninstall", "--target", target]).ok();
        assert_eq!(
            json(&agent, path),
            json!({ "theirs": { "b": 1, "a": [1, 2] } }),
            "{target}"
        );
        assert!(
            !tree(&agent.home)
                .iter()
                .any(|(path, _)| path.contains("skills") || path.contains("settings")),
            "{target}"
        );
    }
}

#[test]
fn codex_keeps_its_comments_and_its_order() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let before =
        "# mine\nmodel = \"big\"  # the big one\n\n[mcp_servers.other]\ncommand = \"other\"\n";
    write(&alice, ".codex/config.toml", before);
    init(&alice, "codex").ok();
    let after = text(&alice, ".codex/config.toml");
    assert!(
        after.starts_with(before) && after.contains("[mcp_servers.chorus]"),
        "{after}"
    );
    let hooks = json(&alice, ".codex/hooks.json");
    assert!(
        hooks["hooks"]["SessionStart"][0]["hooks"][0]["command"]
            .as_str()
            .unwrap()
            .contains("--instrument codex")
    );
    alice.run(&["uninstall", "--target", "codex"]).ok();
    assert_eq!(text(&alice, ".codex/config.toml"), before);
    assert!(
        !alice.home.join(".codex/hooks.json").exists(),
        "the file was ours alone"
    );
}

#[test]
fn a_broken_configuration_stops_everything_and_is_left_as_it_is() {
    let scene = Scene::open();
    for (target, path, _) in JSON_HOSTS {
        let agent = scene.newcomer(target);
        write(&agent, path, "{\"theirs\": ");
        let before = tree(&agent.home);
        let refused = init(&agent, target);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(
            refused.err.contains("is not valid JSON")
                && refused.err.contains("nothing was changed"),
            "{refused:?}"
        );
        assert_eq!(tree(&agent.home), before, "{target}");
    }
    let agent = scene.newcomer("settings");
    write(&agent, ".claude/settings.json", "{\"hooks\": []}");
    let before = tree(&agent.home);
    assert_eq!(init(&agent, "claude-user").code, 1);
    assert_eq!(tree(&agent.home), before, "the tools were not added either");
}

#[test]
fn what_is_not_ours_is_never_overwritten() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    write(&alice, ".claude/skills/chorus/SKILL.md", "my own choir\n");
    let before = tree(&alice.home);
    let refused = init(&alice, "claude-user");
    assert_eq!(refused.code, 1);
    assert!(
        refused.err.contains("SKILL.md: is not as we wrote it"),
        "{refused:?}"
    );
    assert_eq!(tree(&alice.home), before);
    let bob = scene.agent("bob");
    write(
        &bob,
        ".claude.json",
        r#"{"mcpServers": {"chorus": {"url": "https://choir.example/mcp"}}}"#,
    );
    let before = tree(&bob.home);
    assert!(init(&bob, "claude-user").err.contains("that is not ours"));
    assert_eq!(tree(&bob.home), before);
    let carol = scene.agent("carol");
    init(&carol, "claude-user").ok();
    write(
        &carol,
        ".claude/skills/chorus/SKILL.md",
        "with my own words\n",
    );
    let left = carol
        .run(&["uninstall", "--target", "claude-user"])
        .ok()
        .out;
    assert!(left.contains("kept, since it was changed"), "{left}");
    assert_eq!(
        text(&carol, ".claude/skills/chorus/SKILL.md"),
        "with my own words\n"
    );
}

#[test]
fn verify_names_what_is_missing_and_how_to_mend_it() {
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let verify = |agent: &Agent| agent.run(&["verify", "--target", "claude-user"]);
    let none = verify(&alice);
    assert_eq!(none.code, 1);
    assert!(
        none.out.contains("✗ skill:") && none.out.contains("chorus init --target claude-user"),
        "{none:?}"
    );
    init(&alice, "claude-user").ok();
    let unregistered = verify(&alice);
    assert_eq!(unregistered.code, 2);
    assert!(
        unregistered
            .out
            .contains("✓ hooks: ~/.claude/settings.json")
            && unregistered.out.contains("✗ identity:")
    );
    alice
        .run(&["register", "alice@chorus", "--culture", "en"])
        .ok();
    let good = verify(&alice).ok().out;
    assert_eq!(good.matches('✓').count(), 5, "{good}");
    let away = Agent {
        home: alice.home.clone(),
        hub: "http://127.0.0.1:1".into(),
    };
    assert_eq!(verify(&away).code, 3);
    std::fs::remove_file(alice.home.join(".claude/settings.json")).unwrap();
    assert!(verify(&alice).out.contains("✗ hooks:"));
}

#[test]
fn hooks_that_nobody_wanted_are_not_missed() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice
        .run(&["init", "--target", "claude-user", "--no-hooks"])
        .ok();
    assert!(!alice.home.join(".claude/settings.json").exists());
    let good = alice.run(&["verify", "--target", "claude-user"]).ok().out;
    assert!(!good.contains("hooks"), "{good}");
}

#[test]
fn a_project_holds_nothing_of_one_machine_and_its_hooks_are_silent_where_we_are_not() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    init(&alice, "claude-project").ok();
    let home = alice.home.display().to_string();
    for path in [".mcp.json", ".claude/settings.json"] {
        let text = text(&alice, path);
        assert!(
            text.contains("\"chorus") && !text.contains(&home) && !text.contains("target"),
            "{text}"
        );
    }
    let settings = json(&alice, ".claude/settings.json");
    let line = settings["hooks"]["Stop"][0]["hooks"][0]["command"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut elsewhere = std::process::Command::new("/bin/sh");
    elsewhere
        .args(["-c", &line])
        .env_clear()
        .env("PATH", "/nowhere")
        .current_dir(&alice.home);
    let ended = run(elsewhere, "").ok();
    assert_eq!(ended.out, "");
}

#[test]
fn two_hosts_on_one_machine_can_be_two_agents() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    alice
        .run(&[
            "register",
            "bob@chorus",
            "--culture",
            "en",
            "--credentials",
            "bob.json",
        ])
        .ok();
    alice.run(&["init", "--target", "claude-user"]).ok();
    alice
        .run(&["init", "--target", "codex", "--credentials", "bob.json"])
        .ok();
    assert_eq!(
        json(&alice, ".claude.json")["mcpServers"]["chorus"]["args"],
        json!(["mcp"])
    );
    let (config, file) = (
        text(&alice, ".codex/config.toml"),
        alice.home.join("bob.json"),
    );
    assert!(
        config.contains(&format!(
            "args = [\"mcp\", \"--credentials\", \"{}\"]",
            file.display()
        )),
        "{config}"
    );
    assert!(text(&alice, ".codex/hooks.json").contains("--credentials"));
    let refused = alice.run(&[
        "init",
        "--target",
        "claude-project",
        "--credentials",
        "bob.json",
    ]);
    assert_eq!(
        refused.code, 1,
        "nothing of one machine in a file of everybody"
    );
}

// Lesson 13
#[test]
fn verify_lists_every_fault_of_an_envelope() {
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let good = r#"{"chorus_version":"0.4","sender_id":"a@chorus","original_text":"hi","sender_culture":"en"}"#;
    assert_eq!(
        alice.run(&["verify", "--envelope", good]).ok().out,
        "✓ Valid Chorus envelope\n"
    );
    write(&alice, "good.json", good);
    alice.run(&["verify", "--envelope", "good.json"]).ok();
    assert_eq!(
        run(alice.command(&["verify", "--envelope", "-"]), good)
            .ok()
            .out,
        "✓ Valid Chorus envelope\n"
    );
    let bad = r#"{"chorus_version":"9","sender_id":"a@chorus","sender_culture":"en","mood":"sunny","turn_number":0}"#;
    let ended = alice.run(&["verify", "--envelope", bad]);
    assert_eq!(ended.code, 1);
    let mut lines = ended.out.lines();
    assert_eq!(lines.next(), Some("✗ Invalid envelope:"));
    let faults: Vec<&str> = lines.collect();
    assert_eq!(faults.len(), 4, "{faults:?}");
    for field in ["chorus_version", "original_text", "mood", "turn_number"] {
        assert!(
            faults.iter().any(|fault| fault.contains(field)),
            "{field}: {faults:?}"
        );
    }
    let broken = alice.run(&["verify", "--envelope", "{\"a\""]);
    assert!(
        broken.code == 1 && broken.out.starts_with("✗ Invalid JSON: "),
        "{broken:?}"
    );
}
