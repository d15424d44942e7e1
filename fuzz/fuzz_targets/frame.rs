//! A submission that is accepted keeps one line that reads back as the same frame, and its fields print to a frame again.

#![no_main]

use chorus_wire::frame::{Frame, Submission};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    match Submission::parse(body) {
        Ok(submission) => {
            let frame = &submission.frame;
            assert!(!frame.text().contains(['\n', '\r']));
            assert_eq!(&Frame::parse(frame.text()).expect("what was kept"), frame);
            let printed = frame.check().expect("what was printed");
            assert_eq!(*printed, **frame);
            if let Ok(scope) = submission.scope() {
                assert_eq!(scope.names(), &frame.recipient_handle);
            }
        }
        Err(error) => assert!(error.code.status() < 500 && error.to_json().len() < 4_096),
    }
});
