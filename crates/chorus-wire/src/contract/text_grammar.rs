//! Grammars of text fields: what the parser accepts, what the published schema says, and what an error asks for.

use super::fault::ContractFault;
use crate::time::UnixMicros;
use crate::{Result, limits};

/// A grammar of a text. `pattern` and `accepts` say the same, once for clients and once for the hub; a property test
/// compares them.
#[derive(Debug)]
pub struct TextGrammar {
    pub accepts: fn(&str) -> bool,
    /// Completes the sentence “it must be …”.
    pub requirement: &'static str,
    /// A regular expression (ECMA 262, without flags) for the whole text.
    pub pattern: &'static str,
    /// Texts that match this are refused although they match `pattern`.
    pub refused_pattern: Option<&'static str>,
    /// In code points.
    pub max_chars: usize,
    /// A format of JSON Schema where there is one.
    pub format: Option<&'static str>,
    pub example: &'static str,
}

impl TextGrammar {
    /// Checks a text that did not come as a field of a request; `field` names it in the error.
    pub fn check<'t>(&self, field: &str, text: &'t str) -> Result<&'t str> {
        if (self.accepts)(text) {
            return Ok(text);
        }
        Err(ContractFault::invalid(field, self.requirement).into())
    }
}

/// Whether a text counts in characters or in octets of UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthUnit {
    Characters,
    Octets,
}

/// Characters that a text may not contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedCharacters {
    None,
    /// PostgreSQL cannot store NUL in a text.
    Nul,
    /// Control characters other than line breaks and tabs.
    Control,
    /// Control characters, line breaks and tabs: a text of one line.
    ControlAndBreaks,
    /// The same, and characters that show nothing: in a name they hide text from people that models read (R-92).
    ControlAndInvisible,
}

impl RefusedCharacters {
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::None => true,
            Self::Nul => !text.contains('\0'),
            Self::Control => !text
                .chars()
                .any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')),
            Self::ControlAndBreaks => !text.chars().any(char::is_control),
            Self::ControlAndInvisible => !text.chars().any(|c| c.is_control() || is_invisible(c)),
        }
    }

    pub const fn pattern(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Nul => Some(r"^[^\u0000]*$"),
            Self::Control => Some(r"^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]*$"),
            Self::ControlAndBreaks => Some(r"^[^\u0000-\u001f\u007f-\u009f]*$"),
            // Without flags a pattern cannot name characters past U+FFFF; the parser refuses those too.
            Self::ControlAndInvisible => Some(concat!(
                r"^[^\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f",
                r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]*$"
            )),
        }
    }

    pub const fn requirement(self) -> &'static str {
        match self {
            Self::None => "any text",
            Self::Nul => "a text without NUL characters",
            Self::Control => "a text without control characters",
            Self::ControlAndBreaks => "a text of one line without control characters",
            Self::ControlAndInvisible => {
                "a text of one line without control or invisible characters"
            }
        }
    }
}

/// Whether the character shows nothing: the default ignorable code points of Unicode, format characters, separators of
/// lines, and the blank letters and braille that look like no character at all.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// RFC 3339 with a zone.
pub const INSTANT: TextGrammar = TextGrammar {
    accepts: |text| UnixMicros::parse(text).is_some(),
    requirement: "an RFC 3339 time with its zone, such as 2026-02-11T14:15:09Z",
    pattern: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-9]{2})$",
    refused_pattern: None,
    max_chars: limits::LABEL_CHARS,
    format: Some("date-time"),
    example: "2026-02-11T14:15:09Z",
};

/// ISO 8601 in UTC, which need not be said (JOB-04): many programs print it without the zone.
pub const UTC_INSTANT: TextGrammar = TextGrammar {
    accepts: |text| {
        let zone = text.get("2026-02-11T14:15:09".len()..).unwrap_or_default();
        let zone = zone.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
        match zone {
            "" => UnixMicros::parse(&format!("{text}Z")).is_some(),
            "Z" | "z" | "+00:00" | "-00:00" => UnixMicros::parse(text).is_some(),
            _ => false,
        }
    },
    requirement: "an ISO 8601 time in UTC, such as 2026-02-11T14:15:09Z",
    // Days that every month has, and years that every calendar has: a pattern cannot count.
    pattern: r"^[1-8][0-9]{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:[Zz]|[+-]00:00)?$",
    refused_pattern: None,
    max_chars: limits::LABEL_CHARS,
    format: None,
    example: "2026-02-11T14:15:09Z",
};

/// The id of a job or a transfer: a UUID, or another opaque id (R-60).
pub const OPAQUE_ID: TextGrammar = TextGrammar {
    accepts: |text| {
        let is_id_byte =
            |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
        (1..=limits::OPAQUE_ID_OCTETS).contains(&text.len()) && text.bytes().all(is_id_byte)
    },
    requirement: "a UUID, or 1 to 128 of letters, digits, '.', '_', ':' and '-'",
    pattern: "^[A-Za-z0-9._:-]+$",
    refused_pattern: None,
    max_chars: limits::OPAQUE_ID_OCTETS,
    format: None,
    example: "7c9e6679-7425-40de-944b-e07fc1f90ae7",
};

/// An absolute http or https URL without user information and blanks. The hub checks the address it resolves to elsewhere.
pub const HTTP_URL: TextGrammar = TextGrammar {
    accepts: is_http_url,
    requirement: "an absolute http or https URL",
    pattern: URL_PATTERN,
    refused_pattern: None,
    max_chars: limits::URL_CHARS,
    format: None,
    example: "https://agent.example.com/hook",
};

pub const URL_PATTERN: &str = r"^[Hh][Tt][Tt][Pp][Ss]?://[^\s\u0000-\u0020\u007f-\u009f\\@/?#]+(?:[/?#][^\s\u0000-\u0020\u007f-\u009f]*)?$";

/// A callback of a service: a URL that authenticates by itself, so it may be long and have user information (CHN-15).
pub const CALLBACK_URL: TextGrammar = TextGrammar {
    accepts: is_callback_url,
    pattern: r"^[Hh][Tt][Tt][Pp][Ss]?://(?:[^\s\u0000-\u0020\u007f-\u009f\\@/?#]*@)?[^\s\u0000-\u0020\u007f-\u009f\\@/?#]+(?:[/?#][^\s\u0000-\u0020\u007f-\u009f]*)?$",
    max_chars: limits::CALLBACK_CHARS,
    example: "https://service.example.com/channels/C04ABCDEF/inbox/tok_1",
    ..HTTP_URL
};

pub fn is_http_url(text: &str) -> bool {
    is_absolute_url(text, limits::URL_CHARS) && !authority_of(text).contains('@')
}

fn is_callback_url(text: &str) -> bool {
    is_absolute_url(text, limits::CALLBACK_CHARS) && authority_of(text).matches('@').count() <= 1
}

fn authority_of(text: &str) -> &str {
    let rest = text.split_once("://").map_or("", |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

fn is_absolute_url(text: &str, max_chars: usize) -> bool {
    let has_blank = text.chars().any(|c| c.is_whitespace() || c.is_control());
    // The parser also takes `http:host` and backslashes, which the published pattern does not.
    let is_plain = text.contains("://")
        && text.chars().count() <= max_chars
        && !authority_of(text).contains('\\');
    is_plain
        && !has_blank
        && url::Url::parse(text)
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}
