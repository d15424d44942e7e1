//! What stays as it was when entries come and go.

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

fn us(program: &str) -> InstalledProgram {
    InstalledProgram {
        program: program.into(),
        credentials: None,
        is_shared: false,
    }
}

fn install(text: &str, program: &str) -> String {
    edited(text, |config| {
        config.add_server(SERVERS, &us(program)).unwrap();
        config
            .add_hooks(hooks(), &us(program), "cc-claude")
            .unwrap();
    })
}

fn uninstall(text: &str) -> String {
    edited(text, |config| {
        config.remove_server(SERVERS);
        config.remove_hooks();
    })
}

const LIVED_IN: &str = r#"{
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
fn what_is_taken_out_again_leaves_no_trace() {
    for before in [LIVED_IN, "{\n  \"a\": 1\n}\n", "{}"] {
        let with = install(before, "chorus");
        assert!(
            with.contains("\"chorus\"")
                && with.contains("chorus hook SessionStart --instrument cc-claude")
        );
        let strip = |text: &str| text.split_whitespace().collect::<String>();
        assert_eq!(strip(&uninstall(&with)), strip(before), "{with}");
    }
    let with = install(LIVED_IN, "chorus");
    for line in LIVED_IN
        .lines()
        .filter(|line| !line.trim().is_empty() && line.contains(['/', 'z', 'b', 'x']))
    {
        assert!(with.contains(line.trim_end()), "{line} is gone from {with}");
    }
}

#[test]
fn twice_is_once() {
    for text in [LIVED_IN, "{}"] {
        let once = install(text, "chorus");
        assert_eq!(install(&once, "chorus"), once);
    }
}

#[test]
fn a_program_that_moved_is_found_where_it_is_now() {
    let moved = install(&install(LIVED_IN, "/old/chorus"), "/new/chorus");
    assert!(!moved.contains("/old/chorus"), "{moved}");
    assert_eq!(moved.matches("/new/chorus").count(), 1 + hooks().len());
}

#[test]
fn what_its_owner_added_to_our_entry_stays() {
    let text = r#"{"mcpServers": {"chorus": {"command": "chorus", "args": ["mcp", "--credentials", "bot.json"]}}}"#;
    let after = edited(text, |config| {
        config.add_server(SERVERS, &us("chorus")).unwrap()
    });
    assert_eq!(after, text);
    let other = InstalledProgram {
        credentials: Some("other.json".into()),
        ..us("chorus")
    };
    let after = edited(text, |config| config.add_server(SERVERS, &other).unwrap());
    assert!(
        after.contains("other.json") && !after.contains("bot.json"),
        "{after}"
    );
}

#[test]
fn a_server_of_somebody_else_under_our_name_is_not_touched() {
    let text = r#"{"mcpServers": {"chorus": {"url": "https://choir.example/mcp"}}}"#;
    let config = JsonConfig::parse(Path::new(PATH), Some(text)).unwrap();
    assert!(config.add_server(SERVERS, &us("chorus")).is_err());
    config.remove_server(SERVERS);
    assert_eq!(config.to_text(), text);
}

#[test]
fn hooks_that_were_taken_from_the_page_are_not_doubled() {
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
fn a_broken_configuration_is_refused_and_not_guessed_at() {
    for broken in ["{", "[]", "{\"a\": 1 \"b\": 2}", "nonsense", "{\"a\":}"] {
        assert!(
            JsonConfig::parse(Path::new(PATH), Some(broken)).is_err(),
            "{broken}"
        );
    }
    for odd in [r#"{"mcpServers": 3}"#, r#"{"mcpServers": []}"#] {
        let config = JsonConfig::parse(Path::new(PATH), Some(odd)).unwrap();
        assert!(config.add_server(SERVERS, &us("chorus")).is_err(), "{odd}");
    }
    let odd = JsonConfig::parse(Path::new(PATH), Some(r#"{"hooks": {"Stop": "x"}}"#)).unwrap();
    assert!(odd.add_hooks(hooks(), &us("chorus"), "cc-claude").is_err());
}

#[test]
fn json5_of_openclaw_stays_json5() {
    let text = "{\n  // mine\n  gateway: { port: 0x10, },\n  mcp: { servers: {}, },\n}\n";
    let with = edited(text, |config| {
        config
            .add_server(&["mcp", "servers"], &us("chorus"))
            .unwrap()
    });
    assert!(
        with.contains("// mine") && with.contains("port: 0x10"),
        "{with}"
    );
    let again = JsonConfig::parse(Path::new(PATH), Some(&with)).unwrap();
    assert!(again.has_server(&["mcp", "servers"]));
}
