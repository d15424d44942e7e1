//! Round trips: any valid frame is printed on one line that parses back to itself, and no input breaks the parser.

use crate::drafts::drafts;
use chorus_wire::frame::{Frame, FrameKind, FramePayload, FrameScope, FrameSubmission};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_frame_parses_back_to_its_draft(draft in drafts()) {
        let frame = draft.to_frame().unwrap();
        prop_assert_eq!(&*frame, &draft);
        prop_assert_eq!(frame.submitted_json(), draft.to_json());
        prop_assert!(!frame.submitted_json().contains(['\n', '\r']), "one data line");
        prop_assert_eq!(&Frame::parse(frame.submitted_json()).unwrap(), &frame);
        let submission = FrameSubmission::parse(FrameSubmission::format_json(None, &frame).as_bytes()).unwrap();
        prop_assert_eq!(submission.scope().unwrap(), &FrameScope::Handle(draft.recipient_handle.clone()));
        prop_assert_eq!(submission.frame, frame);
    }

    #[test]
    fn no_bytes_break_the_parser(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(FrameSubmission::parse(&bytes).is_err());
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(Frame::parse(&text).is_err());
        for kind in FrameKind::ALL {
            prop_assert!(FramePayload::parse(*kind, &text).is_err());
        }
    }

    // With one character changed the text is refused, or it is a valid frame.
    #[test]
    fn a_changed_frame_is_refused_or_parses_as_what_it_says(draft in drafts(), position in any::<prop::sample::Index>(), replacement in any::<char>()) {
        let text = draft.to_json();
        let offsets: Vec<usize> = text.char_indices().map(|(offset, _)| offset).collect();
        let start = offsets[position.index(offsets.len())];
        let end = start + text[start..].chars().next().unwrap().len_utf8();
        let mut changed = text.clone();
        changed.replace_range(start..end, replacement.encode_utf8(&mut [0; 4]));
        match Frame::parse(&changed) {
            Ok(frame) => prop_assert_eq!(&*Frame::parse(&frame.to_json()).unwrap(), &*frame),
            Err(error) => prop_assert!(error.code.status() < 500, "{}", error),
        }
    }
}

// Otherwise the tests above would prove less than they claim.
#[test]
fn the_random_drafts_cover_every_kind() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut kinds = std::collections::HashSet::new();
    for _ in 0..500 {
        kinds.insert(drafts().new_tree(&mut runner).unwrap().current().kind());
    }
    assert_eq!(kinds.len(), FrameKind::ALL.len());
}
