//! A channel's artifacts (versioned texts that members edit together) and files (R-75).

use crate::contract::{
    self, ContractFault, FieldCheck, LengthUnit, ObjectRule, RefusedCharacters, TextGrammar,
    integer_between, single_line,
};
use crate::{Error, Result, limits, time::UnixMicros, wire_object};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

/// An artifact without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    /// Its name in the channel; it never changes.
    #[schema(example = "auth-spec")]
    pub slug: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub title: Option<String>,
    /// Starts at 1 and grows by one with every edit.
    pub version: u64,
    /// In bytes.
    pub size: u64,
    /// A member's name.
    pub created_by: String,
    #[schema(value_type = String, format = DateTime)]
    pub created_at: UnixMicros,
    pub updated_by: String,
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: UnixMicros,
}

/// An artifact with the text of one version, not necessarily the newest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactText {
    #[serde(flatten)]
    pub artifact: Artifact,
    /// The version of `content`.
    pub content_version: u64,
    pub content: String,
}

/// A file without its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileInfo {
    #[schema(example = "trace.json")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub media_type: Option<String>,
    /// In bytes.
    pub size: u64,
    /// A member's name.
    pub put_by: String,
    #[schema(value_type = String, format = DateTime)]
    pub put_at: UnixMicros,
}

/// All artifacts and files of a channel, ordered by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChannelContents {
    pub artifacts: Vec<Artifact>,
    pub files: Vec<FileInfo>,
}

/// The name of an artifact, which needs no escaping in a path.
pub const SLUG: TextGrammar = TextGrammar {
    accepts: is_slug,
    requirement: "1 to 128 of a-z, 0-9, '.', '_' and '-', beginning with a letter or digit",
    pattern: "^[a-z0-9][a-z0-9._-]*$",
    refused_pattern: None,
    max_chars: limits::SLUG_OCTETS,
    format: None,
    example: "auth-spec",
};

/// The name of a file, without slashes, so that a client that saves it stays in its folder (path traversal).
pub const FILE_NAME: TextGrammar = TextGrammar {
    accepts: is_file_name,
    requirement: "1 to 256 characters in one line, without slashes",
    pattern: r"^[^\u0000-\u001f\u007f-\u009f/\\]+$",
    refused_pattern: Some(r"^\.\.?$"),
    max_chars: limits::LABEL_CHARS,
    format: None,
    example: "trace.json",
};

pub const MEDIA_TYPE: TextGrammar = TextGrammar {
    accepts: is_media_type,
    requirement: "a media type such as application/json",
    pattern: r"^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$",
    refused_pattern: None,
    max_chars: limits::LABEL_CHARS,
    format: None,
    example: "application/json",
};

pub const TITLE_CHECK: FieldCheck = single_line(1, limits::LABEL_CHARS);

/// The text of an artifact, or a part of it.
pub const fn artifact_text(min: usize) -> FieldCheck {
    FieldCheck::Text {
        min,
        max: limits::ARTIFACT_BYTES,
        unit: LengthUnit::Octets,
        refused: RefusedCharacters::Nul,
    }
}

pub const VERSION_CHECK: FieldCheck = integer_between(1, limits::SAFE_INTEGER_MAX);

wire_object! {
    /// A new artifact.
    NewArtifact, refuses unknown, example r##"{"slug": "auth-spec", "title": "Auth spec", "content": "# Auth"}"## => {
        /// Its name for good: a-z, 0-9, '.', '_' and '-'.
        required slug: String = FieldCheck::Grammar(&SLUG);
        /// A line that says what it is.
        optional title: String = TITLE_CHECK;
        /// The text.
        required content: String = artifact_text(0);
    }
}

wire_object! {
    /// A change of an artifact: the whole new text, or a passage and its replacement.
    ArtifactPatch, refuses unknown, rules [ONE_EDIT_RULE], example r##"{"version": 1, "content": "# Auth, second draft"}"## => {
        /// The version that the change starts from, which must still be the newest.
        required version: u64 = VERSION_CHECK;
        /// The whole new text; without it, find and replace.
        optional content: String = artifact_text(0);
        /// A passage that is there exactly once.
        optional find: String = artifact_text(1);
        /// What stands in its place.
        optional replace: String = artifact_text(0);
        /// A new title.
        optional title: String = TITLE_CHECK;
    }
}

const ONE_EDIT_RULE: ObjectRule = ObjectRule {
    find_fault: |patch| {
        let has = |name: &str| patch.get(name).is_some();
        let sentence = match (has("content"), has("find"), has("replace")) {
            (true, false, false) | (false, true, true) => return None,
            (true, _, _) => "content goes without find and replace",
            (false, true, false) => "replace is required with find",
            (false, false, true) => "find is required with replace",
            (false, false, false) => "content is required, or find and replace are",
        };
        Some(ContractFault::explain("content", sentence))
    },
    describe: |schema, _| {
        schema["oneOf"] = json!([
            {"required": ["content"], "properties": {"content": {}, "find": false, "replace": false}},
            {"required": ["find", "replace"], "properties": {"find": {}, "replace": {}, "content": false}},
        ]);
    },
};

impl NewArtifact {
    pub fn parse(body: &[u8]) -> Result<Self> {
        Ok(contract::parse_body(body)?)
    }
}

impl ArtifactPatch {
    pub fn parse(body: &[u8]) -> Result<Self> {
        Ok(contract::parse_body(body)?)
    }
}

fn is_slug(text: &str) -> bool {
    let is_lower_or_digit = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=limits::SLUG_OCTETS).contains(&text.len())
        && is_lower_or_digit(text.as_bytes()[0])
        && text
            .bytes()
            .all(|b| is_lower_or_digit(b) || matches!(b, b'.' | b'_' | b'-'))
}

fn is_file_name(text: &str) -> bool {
    (1..=limits::LABEL_CHARS).contains(&text.chars().count())
        && !text
            .chars()
            .any(|c| c.is_control() || matches!(c, '/' | '\\'))
        && !matches!(text, "." | "..")
}

fn is_media_type(text: &str) -> bool {
    let is_token = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
    };
    text.len() <= limits::LABEL_CHARS
        && text
            .split_once('/')
            .is_some_and(|(main_type, subtype)| is_token(main_type) && is_token(subtype))
}

/// Checks an artifact's name.
pub fn check_slug(text: &str) -> Result<&str> {
    SLUG.check("slug", text)
}

/// Checks a file's name.
pub fn check_file_name(text: &str) -> Result<&str> {
    FILE_NAME.check("name", text)
}

/// Checks an artifact's text.
pub fn check_artifact_content(text: &str) -> Result<&str> {
    if text.len() > limits::ARTIFACT_BYTES {
        return Err(Error::validation(format!(
            "content must be at most {} bytes",
            limits::ARTIFACT_BYTES
        )));
    }
    // PostgreSQL cannot store NUL in a text.
    if text.contains('\0') {
        Err(Error::validation(
            "content must not have NUL characters in it",
        ))
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_and_file_names_cannot_leave_their_folder() {
        for good in ["a", "auth-spec", "0.1_notes"] {
            assert!(check_slug(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "-a", ".a", "a/b", "a b", "ä", &"a".repeat(129)] {
            assert!(check_slug(bad).is_err(), "{bad}");
        }
        assert!(check_file_name("Bericht 3.pdf").is_ok() && check_file_name("…").is_ok());
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "a\\b",
            "a\nb",
            "a\0",
            &"a".repeat(257),
        ] {
            assert!(check_file_name(bad).is_err(), "{bad:?}");
        }
    }
}
