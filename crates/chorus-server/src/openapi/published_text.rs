//! The texts of the OpenAPI document: doc comments are for maintainers too, so rule numbers and Rust links are removed.

use serde_json::{Map, Value};

/// Rule numbers that a doc comment may cite in parentheses; docs/ explains them.
const RULE_PREFIXES: [&str; 8] = ["ENV-", "TRN-", "SKL-", "CHN-", "JOB-", "FRM-", "R-", "D-"];
const RULE_WORDS: [&str; 3] = ["lesson ", "failure ", "invariant "];

/// Descriptions of schemas whose doc comment is missing, or written for maintainers.
const SCHEMA_TEXTS: [(&str, &str); 15] = [
    (
        "Accord",
        "An agreement by which one organisation lets members of another address some of its own.",
    ),
    (
        "ConnectionRevoked",
        "The reply to the revocation of a connection string.",
    ),
    (
        "FailureBody",
        "The code and the message of an error. The codes are listed in docs/errors.md.",
    ),
    (
        "FoundSkill",
        "The skill for which an agent was found, and its price.",
    ),
    ("HeartbeatBody", "Which agent is online."),
    ("HeartbeatReply", "The presence that the hub has recorded."),
    (
        "Organisation",
        "An organisation: a handle that several agents belong to.",
    ),
    (
        "OrganisationMember",
        "A member of an organisation and its roles.",
    ),
    ("ReplyMetadata", "When the hub made the reply."),
    (
        "ReputationStats",
        "How many jobs the agent has finished, and how they ended.",
    ),
    ("RosterSession", "A session with an open frame stream."),
    (
        "SkillRow",
        "A skill, the number of agents that offer it and the lowest price.",
    ),
    ("FailureReply", "An error in the wrapped form."),
    (
        "MarketFailure",
        "An error in the form of the market's routes.",
    ),
    (
        "FrameFailure",
        "An error in the form of the frame routes. `field` names the field or parameter at fault.",
    ),
];

/// Cleans every description of the document and adds the missing ones of schemas.
pub fn clean_descriptions(document: &mut Value) {
    let schemas = document["components"]["schemas"].as_object_mut();
    for (name, schema) in schemas.into_iter().flatten() {
        if let Some((_, text)) = SCHEMA_TEXTS.iter().find(|(known, _)| known == name) {
            schema["description"] = Value::from(*text);
        } else if let Some(data) = name.strip_prefix("SuccessReply_") {
            schema["description"] = Value::from(describe_wrapped(data));
        }
    }
    clean_texts(document);
}

fn describe_wrapped(data: &str) -> String {
    match data.strip_prefix("Vec_") {
        Some(item) => format!("A successful reply; `data` is a list of `{item}`."),
        None => format!("A successful reply; `data` is a `{data}`."),
    }
}

fn clean_texts(value: &mut Value) {
    match value {
        Value::Array(parts) => parts.iter_mut().for_each(clean_texts),
        Value::Object(object) => clean_object(object),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// An example may have a key `description` of its own, and its texts are data.
fn clean_object(object: &mut Map<String, Value>) {
    for (key, value) in object.iter_mut() {
        match (key.as_str(), &mut *value) {
            ("description" | "summary", Value::String(text)) => *text = clean_text(text),
            ("example" | "examples" | "x-example", _) => {}
            (_, part) => clean_texts(part),
        }
    }
}

/// The text without citations and link brackets, with its wrapped lines joined.
fn clean_text(text: &str) -> String {
    let text = remove_citations(text).replace("[`", "`").replace("`]", "`");
    let paragraphs: Vec<String> = text
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    paragraphs.join("\n\n")
}

fn remove_citations(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('(') {
        let Some(close) = rest[open..].find(')').map(|at| open + at) else {
            break;
        };
        if rest[open + 1..close].split(", ").all(is_citation) {
            out.push_str(rest[..open].trim_end());
        } else {
            out.push_str(&rest[..=close]);
        }
        rest = &rest[close + 1..];
    }
    out + rest
}

/// `TRN-59`, `FRM-62…82`, `lesson 4`
fn is_citation(text: &str) -> bool {
    let number = RULE_PREFIXES
        .iter()
        .chain(&RULE_WORDS)
        .find_map(|prefix| text.strip_prefix(prefix));
    number.is_some_and(|number| {
        number.starts_with(|c: char| c.is_ascii_digit())
            && number.chars().all(|c| c.is_ascii_digit() || c == '…')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_and_links_are_removed_and_other_parentheses_stay() {
        for (text, published) in [
            ("A record (TRN-07, TRN-34, R-32). Only", "A record. Only"),
            ("The first (lesson 4).", "The first."),
            ("A handle (FRM-62…82)", "A handle"),
            ("0, 1 (some) or 10 (many)", "0, 1 (some) or 10 (many)"),
            ("See [`Name`]\nand more.", "See `Name` and more."),
            ("An open ( stays", "An open ( stays"),
        ] {
            assert_eq!(clean_text(text), published);
        }
    }
}
