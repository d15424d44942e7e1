//! Replaces random values by numbered placeholders in order of appearance, so that transcripts of two runs can be compared.

use std::collections::HashMap;

#[derive(Default)]
pub struct Placeholders {
    seen: HashMap<String, usize>,
    called: Vec<(String, String)>,
    /// Whether sequences and instants of the log are masked too. Hubs of a cluster also log cache invalidations (D-81), so
    /// its numbers grow faster; clients see gaps in them anyway, since the entries of all agents are in one log.
    pub mask_log_positions: bool,
    /// What the numbers in this entry count; empty where they are not sequences of the log.
    pub counted: &'static str,
}

/// The text before a sequence of the log.
const BEFORE_PLACES: [&str; 12] = [
    "\nid: ",
    "\"id\":",
    "\"last_id\":",
    "\"next\":\"",
    "\\\"id\\\":",
    "\"cursor\":",
    "\"call\":",
    "next_since\":",
    "next_since\\\":",
    "since=",
    "with since ",
    "\\\"cursor\\\":",
];

impl Placeholders {
    /// Replaces an address of this run by a name that all runs share.
    pub fn assign(&mut self, found: &str, name: &str) {
        self.called.push((found.to_owned(), name.to_owned()));
    }

    pub fn mask(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (found, name) in &self.called {
            text = text.replace(found, name);
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let found = random_token(rest.as_bytes(), &out)
                .or_else(|| self.log_position(rest.as_bytes(), &out));
            let (kind, length) = found.unwrap_or(("", 0));
            if length == 0 {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            } else {
                let name = self.placeholder(kind, &out, &rest[..length]);
                out += &name;
                rest = &rest[length..];
            }
        }
        out
    }

    fn placeholder(&mut self, kind: &str, before: &str, text: &str) -> String {
        // Two of these may be equal by chance.
        if kind == "pause" || kind == "head" {
            return format!("<{kind}>");
        }
        let (key, next) = (self.key(kind, before, text), self.seen.len() + 1);
        format!("<{kind} {}>", self.seen.entry(key).or_insert(next))
    }

    /// What identifies a value when it appears again.
    fn key(&self, kind: &str, before: &str, text: &str) -> String {
        match kind {
            "entry" => format!("{} {text}", self.counted),
            "instant" => format!(
                "{}{text}",
                &before[before.len().saturating_sub("2026-03-20T10:00:00.".len())..]
            ),
            _ => text.to_owned(),
        }
    }

    /// A number of an entry, or its instant: the parts of a second are counted up where entries have the same time (D-03).
    fn log_position(&self, text: &[u8], before: &str) -> Option<(&'static str, usize)> {
        if !self.mask_log_positions || self.counted.is_empty() {
            return None;
        }
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        // The newest entry of the log, which may be of the hubs themselves.
        if before.ends_with("event: connected\nid: ") {
            return Some(("head", digits)).filter(|_| digits > 0);
        }
        if (1..6).contains(&digits) && BEFORE_PLACES.iter().any(|marker| before.ends_with(marker)) {
            return Some(("entry", digits)).filter(|_| text[0] != b'0');
        }
        let counted = digits == 6
            && text.get(6) == Some(&b'Z')
            && before.ends_with('.')
            && &text[..6] != b"000000";
        counted.then_some(("instant", 6))
    }
}

/// The claims and the tag of a delivery's token (D-122), without its prefix.
const DELIVERY_TOKEN_CHARS: usize = 80;

/// The kind and the length of a random value at this place.
fn random_token(text: &[u8], before: &str) -> Option<(&'static str, usize)> {
    if before.ends_with("webhook-signature: ") {
        return Some((
            "signature",
            text.iter()
                .take_while(|byte| !byte.is_ascii_whitespace())
                .count(),
        ));
    }
    if before.ends_with("whsec_") {
        let is_digit = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
        return Some(("signing secret", text.iter().take_while(is_digit).count()))
            .filter(|(_, length)| *length > 0);
    }
    if before.ends_with("tok_") || before.ends_with("mcp_") {
        let is_digit = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
        let length = text.iter().take_while(is_digit).count();
        // Shorter ones, of persistent callbacks, are hexadecimal.
        if length == DELIVERY_TOKEN_CHARS {
            return Some(("delivery token", length));
        }
    }
    // The pause before a reconnect is random, so that clients do not reconnect all at once.
    if before.ends_with("event: closing\nretry: ") {
        return Some((
            "pause",
            text.iter().take_while(|byte| byte.is_ascii_digit()).count(),
        ));
    }
    // No value begins in the middle of a longer word.
    if before.as_bytes().last().is_some_and(u8::is_ascii_hexdigit)
        || !text.first()?.is_ascii_hexdigit()
    {
        return None;
    }
    if is_uuid(text) {
        return Some(("uuid", 36));
    }
    let hex = text
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    if hex == 32 {
        return Some(("secret", 32));
    }
    if hex == 16 && before.ends_with("x-request-id: ") {
        return Some(("request", 16));
    }
    ring_place(text).map(|length| ("place", length))
}

fn is_uuid(text: &[u8]) -> bool {
    let Some(word) = text.get(..36) else {
        return false;
    };
    let dash = |place: usize| matches!(place, 8 | 13 | 18 | 23);
    let shaped = word.iter().enumerate().all(|(n, byte)| {
        if dash(n) {
            *byte == b'-'
        } else {
            byte.is_ascii_hexdigit()
        }
    });
    shaped && !text.get(36).is_some_and(u8::is_ascii_alphanumeric)
}

/// A place in a handle's ring: the number of its life, which is chance, and the number of the event.
fn ring_place(text: &[u8]) -> Option<usize> {
    let life = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = text.get(life..)?.strip_prefix(b"-")?;
    let event = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ends = !rest
        .get(event)
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    (life >= 9 && event >= 1 && ends).then_some(life + 1 + event)
}
