//! Redacts secrets in diagnostic frames: a symptom is often pasted from a log, and every session in the scope reads it (FRM-107).

use serde_json::{Map, Value};

/// How the secrets of a hub, and common ones of other services, begin.
const SECRET_PREFIXES: [&str; 14] = [
    "ca_",
    "sk_",
    "sk-",
    "tok_",
    "mcp_",
    "cs_",
    "cl_",
    "cc_",
    "co_",
    "whsec_",
    "ghp_",
    "github_pat_",
    "xoxb-",
    "AKIA",
];
/// A shorter run of letters and digits is more likely a word than a secret.
const MIN_SECRET_CHARS: usize = 16;
const REDACTED: &str = "[redacted]";

/// The text with `[redacted]` in place of every word that looks like a secret.
pub fn redact_text(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '/' | '=');
    let mut redacted = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        redacted.push_str(&redact_word(word));
        let gap_end = after.find(is_part).unwrap_or(after.len());
        redacted.push_str(&after[..gap_end]);
        rest = &after[gap_end..];
    }
    redacted
}

/// A word may have a secret at its end, as the path of a URL or `key=secret` has.
fn redact_word(word: &str) -> String {
    let starts = SECRET_PREFIXES.iter().filter_map(|prefix| {
        let at = word.find(prefix)?;
        let is_own_word = word[..at]
            .chars()
            .next_back()
            .is_none_or(|before| matches!(before, '/' | '=' | '-' | '+'));
        let secret = &word[at + prefix.len()..];
        (is_own_word && secret.len() >= MIN_SECRET_CHARS).then_some(at)
    });
    match starts.min() {
        Some(at) => format!("{}{REDACTED}", &word[..at]),
        None => word.to_owned(),
    }
}

/// The same for every text of a payload.
pub fn redact_payload(payload: Map<String, Value>) -> Map<String, Value> {
    payload
        .into_iter()
        .map(|(name, value)| (name, redact_value(value)))
        .collect()
}

fn redact_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact_text(&text)),
        Value::Array(items) => items.into_iter().map(redact_value).collect(),
        Value::Object(fields) => Value::Object(redact_payload(fields)),
        value @ (Value::Null | Value::Bool(_) | Value::Number(_)) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FRM-107
    #[test]
    fn what_looks_like_a_secret_does_not_leave_and_words_do() {
        let secret = "0123456789abcdef0123456789abcdef";
        for (text, expected) in [
            (
                format!("401 with ca_{secret}, why?"),
                "401 with [redacted], why?".to_owned(),
            ),
            (
                format!("POST https://hub.example/inbox/sk_{secret} fails"),
                "POST https://hub.example/inbox/[redacted] fails".to_owned(),
            ),
            (format!("KEY=ghp_{secret}"), "KEY=[redacted]".to_owned()),
        ] {
            assert_eq!(redact_text(&text), expected);
        }
        for kept in [
            "the task_id is 7",
            "ca_short",
            "mcp_server is down",
            "é ca_ x",
            "",
        ] {
            assert_eq!(redact_text(kept), kept);
        }
    }
}
