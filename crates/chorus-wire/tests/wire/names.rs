//! Addresses, handles and agent names, compared with an independent implementation of their grammars (R-01, R-03, R-37,
//!

use chorus_wire::identity::{AgentAddress, AgentName, Handle};
use proptest::prelude::*;

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";
const DIGITS: &str = "0123456789";

fn has_only(text: &str, sets: &[&str]) -> bool {
    text.chars().all(|c| sets.iter().any(|set| set.contains(c)))
}

fn is_address(text: &str) -> bool {
    let capitals = LETTERS.to_uppercase();
    let sides: Vec<&str> = text.split('@').collect();
    let is_side =
        |side: &&str| !side.is_empty() && has_only(side, &[LETTERS, &capitals, DIGITS, "._-"]);
    sides.len() == 2 && sides.iter().all(is_side) && text.chars().count() <= 128
}

fn is_handle(text: &str) -> bool {
    let Some(('~', name)) = text
        .chars()
        .next()
        .map(|first| (first, &text[first.len_utf8()..]))
    else {
        return false;
    };
    let edges = [name.chars().next(), name.chars().last()];
    has_only(name, &[LETTERS, DIGITS, "-"])
        && (1..33).contains(&name.chars().count())
        && edges.iter().all(|edge| *edge != Some('-'))
        && name != "org"
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && has_only(&text.to_lowercase(), &["abcdef", DIGITS, "-"])
}

fn is_short(text: &str) -> bool {
    let capitals = LETTERS.to_uppercase();
    (1..129).contains(&text.chars().count())
        && has_only(text, &[LETTERS, &capitals, DIGITS, "._:-"])
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9._-]{1,8}@[a-zA-Z0-9._-]{1,8}",
        "[a-zA-Z0-9._-]{62,66}@[a-zA-Z0-9._-]{62,66}",
        "~[a-z0-9-]{0,5}",
        "~[a-z0-9-]{30,34}",
        "[a-z@~. -]{0,6}",
        "[0-9a-fA-F]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "[0-9a-f-]{36}",
        "[0-9a-f]{32}",
        "[A-Za-z0-9._:-]{1,9}",
        "[A-Za-z0-9._:-]{127,130}",
        ".{0,6}",
        Just("~org".to_owned()),
    ]
}

proptest! {
    #[test]
    fn an_address_follows_the_grammar_and_parses_back(text in texts()) {
        let parsed = AgentAddress::parse("receiver_id", &text);
        prop_assert_eq!(parsed.is_ok(), is_address(&text), "{}", text);
        match parsed {
            Ok(address) => {
                prop_assert_eq!(address.as_str(), &text);
                prop_assert_eq!(format!("{}@{}", address.name(), address.host()), text);
            }
            Err(error) => prop_assert!(error.message.starts_with("receiver_id"), "{}", error.message),
        }
    }

    // never case-folded, never trimmed
    #[test]
    fn a_handle_follows_the_grammar_and_parses_back(text in texts()) {
        let parsed = Handle::parse(&text);
        prop_assert_eq!(parsed.is_some(), is_handle(&text), "{}", text);
        if let Some(handle) = parsed {
            prop_assert_eq!(handle.to_string(), text);
        }
    }

    // the order of the rules
    #[test]
    fn a_name_is_classified_by_its_syntax(text in texts()) {
        let kind = match AgentName::parse("receiver_id", &text) {
            Ok(AgentName::Handle(_)) => "handle",
            Ok(AgentName::Uuid(_)) => "uuid",
            Ok(AgentName::Address(_)) => "address",
            Ok(AgentName::Short(_)) => "short",
            Err(_) => "none",
        };
        let expected = if text.starts_with('~') {
            if is_handle(&text) { "handle" } else { "none" }
        } else if is_uuid(&text) {
            "uuid"
        } else if text.contains('@') {
            if is_address(&text) { "address" } else { "none" }
        } else if is_short(&text) {
            "short"
        } else {
            "none"
        };
        prop_assert_eq!(kind, expected, "{}", text);
    }

    #[test]
    fn the_canonical_text_names_the_same_agent(text in texts()) {
        if let Ok(name) = AgentName::parse("receiver_id", &text) {
            let canonical = name.canonical_text("chorus");
            if canonical.len() <= 128 {
                prop_assert_eq!(AgentName::parse("receiver_id", &canonical).unwrap().canonical_text("chorus"), canonical);
            }
        }
    }
}

//
#[test]
fn an_address_owns_its_handle_on_its_own_hub_only() {
    let handle = |text: &str| {
        AgentAddress::parse("", text)
            .unwrap()
            .local_handle("chorus")
            .map(|handle| handle.to_string())
    };
    assert_eq!(handle("alice@chorus").as_deref(), Some("~alice"));
    for other in [
        "alice@elsewhere",
        "Alice@chorus",
        "a.b@chorus",
        "-a@chorus",
        "a-@chorus",
        "org@chorus",
        "a@Chorus",
    ] {
        assert_eq!(handle(other), None, "{other}");
    }
}

// every spelling of a name finds the same agent
#[test]
fn short_names_and_uuids_have_one_canonical_text() {
    let canonical = |text: &str| AgentName::parse("", text).unwrap().canonical_text("chorus");
    assert_eq!(canonical("bob"), canonical("bob@chorus"));
    assert_ne!(canonical("Bob"), canonical("bob@chorus"));
    assert_eq!(
        canonical("A3B8D1B6-0B3B-4B1A-9C1A-1A2B3C4D5E6F"),
        "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f"
    );
    assert_eq!(canonical("urn:agent:7"), "urn:agent:7");
}
