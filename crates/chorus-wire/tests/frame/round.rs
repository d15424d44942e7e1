//! Any frame that can be said is printed as one line that reads back as itself; no text at all breaks the reader.

use crate::drafts::drafts;
use chorus_wire::frame::{Frame, FrameKind, FrameScope, FrameSubmission, Payload};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_frame_reads_back_as_it_was_said(draft in drafts()) {
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
    fn no_bytes_at_all_break_the_reader(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(FrameSubmission::parse(&bytes).is_err());
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(Frame::parse(&text).is_err());
        for kind in FrameKind::ALL {
            prop_assert!(Payload::parse(*kind, &text).is_err());
        }
    }

    // One letter changed anywhere: refused, or another frame, or the same fields written otherwise.
    #[test]
    fn a_bent_frame_is_refused_or_read_as_what_it_says(draft in drafts(), place in any::<prop::sample::Index>(), with in any::<char>()) {
        let text = draft.to_json();
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let at = places[place.index(places.len())];
        let mut bent = text.clone();
        let next = at + text[at..].chars().next().unwrap().len_utf8();
        bent.replace_range(at..next, with.encode_utf8(&mut [0; 4]));
        match Frame::parse(&bent) {
            Ok(frame) => prop_assert_eq!(&*Frame::parse(&frame.to_json()).unwrap(), &*frame),
            Err(error) => prop_assert!(error.code.status() < 500, "{}", error),
        }
    }
}

// The strategies above must speak every kind, or they prove less than they say.
#[test]
fn every_kind_is_among_the_frames_that_are_said() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut said = std::collections::HashSet::new();
    for _ in 0..500 {
        said.insert(drafts().new_tree(&mut runner).unwrap().current().kind());
    }
    assert_eq!(said.len(), FrameKind::ALL.len());
}
