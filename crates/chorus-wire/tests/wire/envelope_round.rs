//! Round trips: a printed envelope or cursor parses back to itself.

use crate::shape::Shape;
use chorus_wire::cursor::Cursor;
use chorus_wire::envelope::{Envelope, EnvelopeDraft};
use proptest::collection::vec;
use proptest::prelude::*;

fn text(min: usize, max: usize) -> impl Strategy<Value = String> {
    vec(any::<char>(), min..=max).prop_map(|chars| chars.into_iter().collect())
}

fn drafts() -> impl Strategy<Value = EnvelopeDraft> {
    let culture = prop::sample::select(vec![
        "en",
        "ja",
        "zh-CN",
        "ZH-hant-tw",
        "de-CH-1996",
        "en-x-whatever",
    ]);
    let optional = (
        prop::option::of(text(10, 60)),
        prop::option::of(text(0, 64)),
        prop::option::of(1..=i64::MAX as u64),
    );
    (
        "[a-zA-Z0-9._-]{1,30}@[a-zA-Z0-9._-]{1,30}",
        text(1, 200),
        culture,
        optional,
    )
        .prop_map(
            |(sender, original, culture, (context, conversation, turn))| EnvelopeDraft {
                chorus_version: Some("0.4".into()),
                sender_id: Some(sender),
                original_text: Some(original),
                sender_culture: Some(culture.into()),
                cultural_context: context,
                conversation_id: conversation,
                turn_number: turn,
            },
        )
}

/// The grammar of cursors, written independently of the parser: digits, at most `i64::MAX`, and an epoch above zero.
fn is_cursor(text: &str) -> bool {
    let is_number = |part: &str| {
        let is_digits = part.chars().all(|c| "0123456789".contains(c))
            && !part.is_empty()
            && part.chars().count() < 20;
        is_digits && part.parse::<u128>().unwrap() < 1 << 63
    };
    let parts: Vec<&str> = text.split('-').collect();
    match parts[..] {
        [seq] => is_number(seq),
        [epoch, seq] => is_number(epoch) && is_number(seq) && epoch.chars().any(|c| c != '0'),
        _ => false,
    }
}

proptest! {
    // ENV-15
    #[test]
    fn an_envelope_parses_back_to_itself(draft in drafts()) {
        let envelope = draft.clone().into_envelope().unwrap();
        let printed = envelope.to_json();
        prop_assert!(!printed.contains(['\n', '\r']), "one data line");
        prop_assert_eq!(&Envelope::parse(&printed).unwrap(), &envelope);
        prop_assert_eq!(Some(envelope.original_text()), draft.original_text.as_deref());
        prop_assert_eq!(envelope.cultural_context(), draft.cultural_context.as_deref());
        prop_assert_eq!(envelope.conversation_id(), draft.conversation_id.as_deref());
        prop_assert_eq!(envelope.turn_number(), draft.turn_number);
        let Shape::Object(fields) = Shape::of(&printed) else { panic!("{printed}") };
        let optional = [draft.cultural_context.is_some(), draft.conversation_id.is_some(), draft.turn_number.is_some()];
        prop_assert_eq!(fields.len(), 4 + optional.iter().filter(|present| **present).count(), "absent fields are not printed");
    }

    // Invariant 5
    #[test]
    fn a_cursor_parses_back_to_itself(epoch in 0..=i64::MAX as u64, seq in 0..=i64::MAX as u64) {
        for cursor in [Cursor { epoch, seq }, Cursor::from_log_seq(seq)] {
            prop_assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
        }
    }

    // lesson 8: anything else is an error, never an empty list
    #[test]
    fn only_a_cursor_parses_as_one(text in prop_oneof!["[0-9]{0,21}", "[0-9]{1,3}-[0-9]{1,3}", "[0-9+. -]{0,8}", ".{0,6}"]) {
        prop_assert_eq!(text.parse::<Cursor>().is_ok(), is_cursor(&text), "{}", text);
    }

    #[test]
    fn log_cursors_sort_like_their_sequences(a in 0..=i64::MAX as u64, b in 0..=i64::MAX as u64) {
        prop_assert_eq!(Cursor::from_log_seq(a).cmp(&Cursor::from_log_seq(b)), a.cmp(&b));
    }
}

#[test]
fn no_text_breaks_the_envelope_parser() {
    proptest!(|(bytes in vec(any::<u8>(), 0..200))| {
        let _ = Envelope::parse(&String::from_utf8_lossy(&bytes));
    });
}
