//! The request for an invite code.

use crate::contract::{self, FieldCheck, INSTANT, characters, integer_between};
use crate::{Result, limits, time::UnixMicros, wire_object};

wire_object! {
    /// A new invite code.
    NewInvite, refuses unknown, example r#"{"label": "workshop", "max_uses": 20, "expires_at": "2030-01-01T00:00:00Z"}"# => {
        /// What it is for, so that an operator recognises it.
        required label: String = characters(1, limits::LABEL_CHARS);
        /// How many registrations it allows; any number if absent.
        optional max_uses: u64 = integer_between(1, i64::MAX as u64);
        /// When it ends; never if absent.
        optional expires_at: UnixMicros = FieldCheck::Grammar(&INSTANT);
    }
}

impl NewInvite {
    pub fn parse(body: &[u8]) -> Result<Self> {
        Ok(contract::parse_body(body)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lesson 9
    #[test]
    fn an_invite_needs_a_label_and_says_which_field_is_wrong() {
        let full =
            NewInvite::parse(br#"{"label":"a","max_uses":2,"expires_at":"1970-01-01T00:00:01Z"}"#)
                .unwrap();
        assert_eq!(
            (full.label.as_str(), full.max_uses, full.expires_at),
            ("a", Some(2), Some(UnixMicros(1_000_000)))
        );
        let cases = [
            ("{}", "label"),
            (r#"{"label":""}"#, "label"),
            (r#"{"label":"a","max_uses":0}"#, "max_uses"),
            (r#"{"label":"a","expires_at":"tomorrow"}"#, "expires_at"),
            (r#"{"label":"a","uses":1}"#, "uses"),
        ];
        for (body, field) in cases {
            assert!(
                NewInvite::parse(body.as_bytes())
                    .unwrap_err()
                    .message
                    .contains(field),
                "{body}"
            );
        }
    }
}
