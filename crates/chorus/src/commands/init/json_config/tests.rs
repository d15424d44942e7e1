//! Adding and removing entries keeps the rest of the configuration.

use super::*;
use crate::commands::init::target::{InitRoots, InitTarget};

const SERVERS: &[&str] = &["mcpServers"];
const PATH: &str = "host.json";

fn edited(text: &str, edit: impl Fn(&JsonConfig<'_>)) -> String {
    let config = JsonConfig::parse(Path::new(PATH), Some(text)).unwrap();
    edit(&config);
    config.to_text()
}

fn hooks() -> &'static [HookEntry] {
    let roots = InitRoots {
        home: "/h".into(),
        working_folder: "/p".into(),
    };
    InitTarget::ClaudeUser
        .resolve_layout(&roots)
        .hooks
        .unwrap()
        .1
}

fn installed(program: &str) -> InstalledProgram {
    InstalledProgram {
        program: program.into(),
        credentials: None,
        is_explicit: false,
        is_shared: false,
    }
}

fn install(text: &str, program: &str) -> String {
    edited(text, |config| {
        config.add_server(SERVERS, &installed(program)).unwrap();
        config
            .add_hooks(hooks(), &installed(program), "cc-claude", HookForm::Grouped)
            .unwrap();
    })
}

fn uninstall(text: &str) -> String {
    edited(text, |config| {
        config.remove_server(SERVERS);
        config.remove_hooks();
    })
}

const EXISTING_CONFIG: &str = r#"{
  // numbers first
  "zeta": 1.50,
  "alpha": {"b": [1,2,  3], "a": null},
  "mcpServers": {
    "other": { "command": "other", "args": ["x"] }
  },
  "hooks": {
    "Stop": [
      { "hooks": [ { "type": "command", "command": "say done" } ] }
    ]
  }
}
"#;

#[test]
fn uninstalling_restores_the_configuration() {
    for before in [EXISTING_CONFIG, "{\n  \"a\": 1\n}\n", "{}"] {
        let with = install(before, "chorus");
        assert!(
            with.contains("\"chorus\"")
                && with.contains("chorus hook SessionStart --instrument cc-claude")
        );
        let strip = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(strip(&uninstall(&with)), strip(before), "{with}");
    }
    let with = install(EXISTING_CONFIG, "chorus");
    for line in EXISTING_CONFIG
        .lines()
        .filter(|line| !line.trim().is_empty() && line.contains(['/', 'z', 'b', 'x']))
    {
        assert!(with.contains(line.trim_end()), "{line} is gone from {with}");
    }
}

#[test]
fn installing_twice_changes_nothing() {
    for text in [EXISTING_CONFIG, "{}"] {
        let once = install(text, "chorus");
        assert_eq!(install(&once, "chorus"), once);
    }
}

#[test]
fn the_path_of_a_moved_program_is_updated() {
    let moved = install(&install(EXISTING_CONFIG, "/old/chorus"), "/new/chorus");
    assert!(!moved.contains("/old/chorus"), "{moved}");
    assert_eq!(moved.matches("/new/chorus").count(), 1 + hooks().len());
}

#[test]
fn changes_of_the_user_to_our_entry_are_kept() {
    let text = r#"{"mcpServers": {"chorus": {"command": "chorus", "args": ["mcp", "--credentials", "bot.json"]}}}"#;
    let after = edited(text, |config| {
        config.add_server(SERVERS, &installed("chorus")).unwrap()
    });
    assert_eq!(after, text);
    let other = InstalledProgram {
        credentials: Some("other.json".into()),
        is_explicit: true,
        ..installed("chorus")
    };
    let after = edited(text, |config| config.add_server(SERVERS, &other).unwrap());
    assert!(
        after.contains("other.json") && !after.contains("bot.json"),
        "{after}"
    );
}

#[test]
fn a_foreign_server_under_our_name_is_not_changed() {
    let text = r#"{"mcpServers": {"chorus": {"url": "https://choir.example/mcp"}}}"#;
    let config = JsonConfig::parse(Path::new(PATH), Some(text)).unwrap();
    assert!(config.add_server(SERVERS, &installed("chorus")).is_err());
    config.remove_server(SERVERS);
    assert_eq!(config.to_text(), text);
}

#[test]
fn hooks_copied_from_the_docs_are_not_doubled() {
    let text = r#"{"hooks": {"PostToolUse": [{"matcher": "Edit", "hooks": [{"type": "command",
        "command": "chorus advise --hook --instrument cc-claude"}]}]}}"#;
    let with = install(text, "chorus");
    assert!(
        !with.contains("chorus hook PostToolUse") && with.contains("chorus hook Stop"),
        "{with}"
    );
    assert!(uninstall(&with).contains("chorus advise --hook"));
}

#[test]
fn an_invalid_configuration_is_refused() {
    for broken in ["{", "[]", "{\"a\": 1 \"b\": 2}", "nonsense", "{\"a\":}"] {
        assert!(
            JsonConfig::parse(Path::new(PATH), Some(broken)).is_err(),
            "{broken}"
        );
    }
    for invalid in [r#"{"mcpServers": 3}"#, r#"{"mcpServers": []}"#] {
        let config = JsonConfig::parse(Path::new(PATH), Some(invalid)).unwrap();
        assert!(
            config.add_server(SERVERS, &installed("chorus")).is_err(),
            "{invalid}"
        );
    }
    let invalid = JsonConfig::parse(Path::new(PATH), Some(r#"{"hooks": {"Stop": "x"}}"#)).unwrap();
    assert!(
        invalid
            .add_hooks(
                hooks(),
                &installed("chorus"),
                "cc-claude",
                HookForm::Grouped
            )
            .is_err()
    );
}

#[test]
fn json5_of_openclaw_stays_json5() {
    let text = "{\n  // mine\n  gateway: { port: 0x10, },\n  mcp: { servers: {}, },\n}\n";
    let with = edited(text, |config| {
        config
            .add_server(&["mcp", "servers"], &installed("chorus"))
            .unwrap()
    });
    assert!(
        with.contains("// mine") && with.contains("port: 0x10"),
        "{with}"
    );
    let reparsed = JsonConfig::parse(Path::new(PATH), Some(&with)).unwrap();
    assert!(reparsed.has_server(&["mcp", "servers"]));
}
