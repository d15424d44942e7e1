//! An accepted submission keeps its frame on one line that parses back to it, and its printed fields are a valid frame.

#![no_main]

use chorus_wire::frame::{Frame, FrameSubmission};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    match FrameSubmission::parse(body) {
        Ok(submission) => {
            let frame = &submission.frame;
            assert!(!frame.submitted_json().contains(['\n', '\r']));
            assert_eq!(
                &Frame::parse(frame.submitted_json()).expect("the kept text parses"),
                frame
            );
            let printed = frame.to_frame().expect("a printed frame is accepted");
            assert_eq!(*printed, **frame);
            if let Ok(scope) = submission.scope() {
                assert_eq!(scope.addressed_handle(), &frame.recipient_handle);
            }
        }
        Err(error) => assert!(error.code.status() < 500 && error.to_json().len() < 4_096),
    }
});
