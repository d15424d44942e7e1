//! `chorus init`, `uninstall` and `verify`.

use crate::actors::{Agent, CommandOutput, Scene, run};
use serde_json::{Value, json};
use std::path::Path;

const JSON_HOSTS: [(&str, &str, &str); 4] = [
    ("claude-user", ".claude.json", "/mcpServers/chorus"),
    ("claude-project", ".mcp.json", "/mcpServers/chorus"),
    ("cursor", ".cursor/mcp.json", "/mcpServers/chorus"),
    ("openclaw", ".openclaw/openclaw.json", "/mcp/servers/chorus"),
];

fn read_text(agent: &Agent, path: &str) -> String {
    std::fs::read_to_string(agent.home.join(path)).unwrap_or_default()
}

fn read_json(agent: &Agent, path: &str) -> Value {
    serde_json::from_str(&read_text(agent, path))
        .unwrap_or_else(|_| panic!("{path}: {}", read_text(agent, path)))
}

fn write_file(agent: &Agent, path: &str, text: &str) {
    let path = agent.home.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Every file below a folder, with its content.
fn list_files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(list_files(&path)),
            false => found.push((
                path.display().to_string(),
                std::fs::read_to_string(&path).unwrap(),
            )),
        }
    }
    found.sort();
    found
}

fn run_init(agent: &Agent, target: &str) -> CommandOutput {
    agent.run(&["init", "--target", target])
}

// SKL-32, SKL-33
#[test]
fn init_prints_the_lines_of_the_specification() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let home = alice.home.display();
    let claude = run_init(&alice, "claude-user").ok().out;
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
fn each_language_installs_its_skill_with_the_hubs_url() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let languages = [
        ("en", "Two audiences", "The key stays in the file"),
        ("zh-CN", "你的用户", "密钥只留在文件里"),
    ];
    for (lang, word, key_rule) in languages {
        alice
            .run(&["init", "--target", "local", "--lang", lang])
            .ok();
        let skill = read_text(&alice, "skills/chorus/SKILL.md");
        assert!(
            skill.starts_with("---\nname: chorus\n") && skill.contains(word),
            "{lang}"
        );
        // A model that no skill tells of claims and notes makes none.
        for command in ["chorus lock ", "chorus locks", "chorus handover "] {
            assert!(skill.contains(command), "{lang}: {command}");
        }
        // R-33: an agent does not show its key.
        assert!(skill.contains(key_rule), "{lang}");
        assert!(
            skill.contains(&format!("{}/messages", alice.hub)) && !skill.contains("{{"),
            "{lang}"
        );
        assert!(
            read_text(&alice, "skills/chorus/TRANSPORT.md")
                .contains("# How Chorus messages travel")
        );
        // SKL-34: the other language lies beside it, and the schema of an envelope.
        let (beside, gone) = match lang {
            "en" => ("SKILL.zh-CN.md", "SKILL.en.md"),
            _ => ("SKILL.en.md", "SKILL.zh-CN.md"),
        };
        let folder = alice.home.join("skills/chorus");
        assert!(
            folder.join(beside).exists() && !folder.join(gone).exists(),
            "{lang}"
        );
        let schema = read_json(&alice, "skills/chorus/envelope.schema.json");
        let required = schema["required"].as_array();
        let required = required.unwrap_or_else(|| panic!("{schema}"));
        assert!(required.contains(&json!("original_text")), "{schema}");
        assert!(
            schema["properties"]["original_text"]["type"] == "string",
            "{schema}"
        );
    }
}

#[test]
fn init_adds_our_tools_and_uninstall_removes_only_ours() {
    let scene = Scene::open();
    for (target, path, pointer) in JSON_HOSTS {
        let agent = scene.agent(target);
        let before = "{\n  \"theirs\": {\"b\": 1, \"a\": [1,2]}\n}\n";
        write_file(&agent, path, before);
        run_init(&agent, target).ok();
        let after = read_json(&agent, path);
        let entry = after
            .pointer(pointer)
            .unwrap_or_else(|| panic!("{target}: {after}"));
        // R-33: pinned, except in files that others read.
        let own = agent.home.join(".chorus/config.json");
        let args = match target {
            "claude-project" => json!(["mcp"]),
            _ => json!(["mcp", "--credentials", own]),
        };
        assert_eq!(entry["args"], args, "{target}");
        assert!(
            read_text(&agent, path).contains("\"theirs\": {\"b\": 1, \"a\": [1,2]}"),
            "{target}"
        );
        let once = list_files(&agent.home);
        run_init(&agent, target).ok();
        assert_eq!(
            list_files(&agent.home),
            once,
            "{target}: a second run changes nothing"
        );
        agent.run(&["uninstall", "--target", target]).ok();
        assert_eq!(
            read_json(&agent, path),
            json!({ "theirs": { "b": 1, "a": [1, 2] } }),
            "{target}"
        );
        assert!(
            !list_files(&agent.home)
                .iter()
                .any(|(path, _)| path.contains("skills") || path.contains("settings")),
            "{target}"
        );
    }
}

#[test]
fn the_comments_and_order_of_codex_are_kept() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    let before =
        "# mine\nmodel = \"big\"  # the big one\n\n[mcp_servers.other]\ncommand = \"other\"\n";
    write_file(&alice, ".codex/config.toml", before);
    run_init(&alice, "codex").ok();
    let after = read_text(&alice, ".codex/config.toml");
    assert!(
        after.starts_with(before) && after.contains("[mcp_servers.chorus]"),
        "{after}"
    );
    let hooks = read_json(&alice, ".codex/hooks.json");
    assert!(
        hooks["hooks"]["SessionStart"][0]["hooks"][0]["command"]
            .as_str()
            .unwrap()
            .contains("--instrument codex")
    );
    alice.run(&["uninstall", "--target", "codex"]).ok();
    assert_eq!(read_text(&alice, ".codex/config.toml"), before);
    assert!(
        !alice.home.join(".codex/hooks.json").exists(),
        "the file had only our entries"
    );
}

#[test]
fn an_invalid_configuration_stops_init_before_any_change() {
    let scene = Scene::open();
    for (target, path, _) in JSON_HOSTS {
        let agent = scene.newcomer(target);
        write_file(&agent, path, "{\"theirs\": ");
        let before = list_files(&agent.home);
        let refused = run_init(&agent, target);
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(
            refused.err.contains("is not valid JSON")
                && refused.err.contains("nothing was changed"),
            "{refused:?}"
        );
        assert_eq!(list_files(&agent.home), before, "{target}");
    }
    let agent = scene.newcomer("settings");
    write_file(&agent, ".claude/settings.json", "{\"hooks\": []}");
    let before = list_files(&agent.home);
    assert_eq!(run_init(&agent, "claude-user").code, 1);
    assert_eq!(
        list_files(&agent.home),
        before,
        "the tools were not added either"
    );
}

#[test]
fn foreign_files_and_entries_are_never_overwritten() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    write_file(&alice, ".claude/skills/chorus/SKILL.md", "my own choir\n");
    let before = list_files(&alice.home);
    let refused = run_init(&alice, "claude-user");
    assert_eq!(refused.code, 1);
    assert!(
        refused.err.contains("SKILL.md: is not as we wrote it"),
        "{refused:?}"
    );
    assert_eq!(list_files(&alice.home), before);
    let bob = scene.agent("bob");
    write_file(
        &bob,
        ".claude.json",
        r#"{"mcpServers": {"chorus": {"url": "https://choir.example/mcp"}}}"#,
    );
    let before = list_files(&bob.home);
    assert!(
        run_init(&bob, "claude-user")
            .err
            .contains("that is not ours")
    );
    assert_eq!(list_files(&bob.home), before);
    let carol = scene.agent("carol");
    run_init(&carol, "claude-user").ok();
    write_file(
        &carol,
        ".claude/skills/chorus/SKILL.md",
        "with my own words\n",
    );
    let output = carol
        .run(&["uninstall", "--target", "claude-user"])
        .ok()
        .out;
    assert!(output.contains("kept, since it was changed"), "{output}");
    assert_eq!(
        read_text(&carol, ".claude/skills/chorus/SKILL.md"),
        "with my own words\n"
    );
}

#[test]
fn verify_names_what_is_missing_and_how_to_fix_it() {
    let scene = Scene::open();
    let alice = scene.newcomer("alice");
    let verify = |agent: &Agent| agent.run(&["verify", "--target", "claude-user"]);
    let none = verify(&alice);
    assert_eq!(none.code, 1);
    assert!(
        none.out.contains("✗ skill:") && none.out.contains("chorus init --target claude-user"),
        "{none:?}"
    );
    run_init(&alice, "claude-user").ok();
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
    assert_eq!(good.matches('✓').count(), 6, "{good}");
    let unreachable = alice.while_hub_is_away();
    assert_eq!(verify(&unreachable).code, 3);
    std::fs::remove_file(alice.home.join(".claude/settings.json")).unwrap();
    assert!(verify(&alice).out.contains("✗ hooks:"));
}

#[test]
fn verify_does_not_expect_hooks_after_no_hooks() {
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
fn project_files_contain_no_local_paths_and_their_hooks_work_without_chorus() {
    let scene = Scene::open();
    let alice = scene.agent("alice");
    run_init(&alice, "claude-project").ok();
    let home = alice.home.display().to_string();
    for path in [".mcp.json", ".claude/settings.json"] {
        let text = read_text(&alice, path);
        assert!(
            text.contains("\"chorus") && !text.contains(&home) && !text.contains("target"),
            "{text}"
        );
    }
    let settings = read_json(&alice, ".claude/settings.json");
    let line = settings["hooks"]["Stop"][0]["hooks"][0]["command"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut other_machine = std::process::Command::new("/bin/sh");
    other_machine
        .args(["-c", &line])
        .env_clear()
        .env("PATH", "/nowhere")
        .current_dir(&alice.home);
    let ended = run(other_machine, "").ok();
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
        read_json(&alice, ".claude.json")["mcpServers"]["chorus"]["args"],
        json!([
            "mcp",
            "--credentials",
            alice.home.join(".chorus/config.json")
        ])
    );
    let config = read_text(&alice, ".codex/config.toml");
    let file = alice.home.join("bob.json");
    assert!(
        config.contains(&format!(
            "args = [\"mcp\", \"--credentials\", \"{}\"]",
            file.display()
        )),
        "{config}"
    );
    assert!(read_text(&alice, ".codex/hooks.json").contains("--credentials"));
    let refused = alice.run(&[
        "init",
        "--target",
        "claude-project",
        "--credentials",
        "bob.json",
    ]);
    assert_eq!(refused.code, 1, "no path of one machine in a shared file");
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
    write_file(&alice, "good.json", good);
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
