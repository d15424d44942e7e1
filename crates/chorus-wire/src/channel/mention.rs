//! Member names, and finding `@name` mentions in a text (R-73).

use crate::contract::{FromNode, JsonNode, TextGrammar, is_invisible};
use crate::{Error, Result, limits};
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A member's name in its channel: letters and digits of any script, with `.`, `_` and `-` only between them, so that
/// the end of a mention is unambiguous.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, example = "timber")]
pub struct MemberName(String);

/// The sender names of messages that no member wrote. A member with such a name could impersonate them.
const RESERVED_NAMES: [&str; 2] = ["operator", "hub"];

impl MemberName {
    pub const GRAMMAR: TextGrammar = TextGrammar {
        accepts: |text| Self::parse("", text).is_ok(),
        requirement: "1 to 64 letters and digits, with '.', '_' and '-' only between them, and not operator or hub",
        // Letters and digits of every script: beyond ASCII a regular expression that every engine takes cannot tell them.
        pattern: r"^[^\u0000-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf](?:[^\u0000-\u002c\u002f\u003a-\u0040\u005b-\u005e\u0060\u007b-\u00a9]*[^\u0000-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00a9])?$",
        refused_pattern: Some("^(?:[oO][pP][eE][rR][aA][tT][oO][rR]|[hH][uU][bB])$"),
        max_chars: limits::MEMBER_NAME_CHARS,
        format: None,
        example: "timber",
    };

    pub fn parse(field: &str, text: &str) -> Result<Self> {
        let has_valid_length = (1..=limits::MEMBER_NAME_CHARS).contains(&text.chars().count());
        if !has_valid_length || !is_member_name(text) {
            return Err(Error::validation(format!(
                "{field} must be 1 to {} letters and digits, with '.', '_' and '-' only between them",
                limits::MEMBER_NAME_CHARS
            )));
        }
        if RESERVED_NAMES.contains(&fold_name(text).as_str()) {
            return Err(Error::validation(format!(
                "{field} must not be {text}: the hub speaks under that name"
            )));
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form in which the name is unique and looked up: `@Timber` mentions `timber`.
    pub fn folded_name(&self) -> String {
        fold_name(&self.0)
    }
}

impl FromNode for MemberName {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        Self::parse("", node?.as_text()?).ok()
    }
}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The form in which names are compared.
pub fn fold_name(name: &str) -> String {
    name.to_lowercase()
}

fn is_name_separator(c: char) -> bool {
    matches!(c, '.' | '_' | '-')
}

/// A letter or digit that can be seen: Unicode has letters that are blank, such as the Hangul filler (R-92).
fn is_name_letter(c: char) -> bool {
    c.is_alphanumeric() && !is_invisible(c)
}

fn is_member_name(text: &str) -> bool {
    let mut chars = text.chars();
    text.chars().next().is_some_and(is_name_letter)
        && text.chars().next_back().is_some_and(is_name_letter)
        && chars.all(|c| is_name_letter(c) || is_name_separator(c))
}

/// The names that a text mentions: folded, each once, in their order. An `@` inside a word, as in an e-mail address, is
/// no mention, so `@bob@hub.example` mentions only `bob`. Trailing punctuation is not part of a name.
pub fn find_mentions(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('@') {
        let inside_word = text[..at]
            .chars()
            .next_back()
            .is_some_and(|c| c.is_alphanumeric() || is_name_separator(c));
        if inside_word {
            continue;
        }
        let rest = &text[at + 1..];
        let end = rest
            .find(|c: char| !(is_name_letter(c) || is_name_separator(c)))
            .unwrap_or(rest.len());
        let name = rest[..end].trim_end_matches(is_name_separator);
        if !is_member_name(name) || name.chars().count() > limits::MEMBER_NAME_CHARS {
            continue;
        }
        let name = fold_name(name);
        if !found.contains(&name) {
            found.push(name);
        }
        if found.len() == limits::MENTIONS_PER_MESSAGE {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_mention_is_found_wherever_a_reader_would_see_it() {
        for (text, names) in [
            ("@timber can you review the auth spec?", vec!["timber"]),
            ("ask @Timber, @oak-2 and @TIMBER.", vec!["timber", "oak-2"]),
            (
                "(@timber) **@oak** @小明，你好",
                vec!["timber", "oak", "小明"],
            ),
            ("@bob@hub.example and @a.b...", vec!["bob", "a.b"]),
            ("me@example.com, a.@b, @ @- @_x, @.", vec![]),
            ("@@oak", vec!["oak"]),
        ] {
            assert_eq!(find_mentions(text), names, "{text}");
        }
    }

    #[test]
    fn reserved_and_malformed_names_are_refused() {
        for bad in [
            "",
            "operator",
            "Hub",
            "-a",
            "a-",
            "a b",
            "a@b",
            "a/b",
            "a\u{3164}b",
            "\u{ffa0}",
            &"x".repeat(65),
        ] {
            assert!(MemberName::parse("name", bad).is_err(), "{bad}");
        }
        for good in ["a", "Timber", "oak-2", "a.b_c", "小明", &"x".repeat(64)] {
            assert!(MemberName::parse("name", good).is_ok(), "{good}");
        }
    }

    proptest! {
        #[test]
        fn every_valid_member_name_can_be_mentioned(before in "[^@]{0,20}[ (\n]", name in "[a-zA-Z0-9][a-zA-Z0-9._-]{0,30}[a-z0-9]", after in "|[.,!? )]{1,3}") {
            let name = MemberName::parse("name", &name);
            prop_assume!(name.is_ok());
            let name = name.unwrap_or_else(|e| panic!("{e}"));
            prop_assert_eq!(find_mentions(&format!("{before}@{name}{after}")), vec![name.folded_name()]);
        }

        #[test]
        fn any_text_yields_only_valid_names_each_once(text in "(?s).{0,200}", at in "[@a-c.]{0,60}") {
            let found = find_mentions(&format!("{text}{at}"));
            prop_assert!(found.len() <= limits::MENTIONS_PER_MESSAGE);
            for (index, name) in found.iter().enumerate() {
                prop_assert!(is_member_name(name) || fold_name(name) != *name, "{}", name);
                prop_assert!(!found[..index].contains(name));
            }
        }

        #[test]
        fn an_at_sign_inside_a_word_is_no_mention(word in "[a-z0-9._-]{1,10}", name in "[a-z]{1,10}") {
            prop_assert_eq!(find_mentions(&format!("{word}@{name}")), Vec::<String>::new());
        }
    }
}
