//! An accepted scope prints one canonical form that parses back to it.

#![no_main]

use chorus_wire::frame::FrameScope;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some(scope) = FrameScope::parse(text) {
        let printed = scope.to_string();
        assert_eq!(
            FrameScope::parse(&printed).expect("a printed scope parses"),
            scope
        );
        assert_eq!(
            printed
                .parse::<FrameScope>()
                .expect("a printed scope parses")
                .to_string(),
            printed
        );
        assert!(printed.contains(scope.addressed_handle().as_str()));
    }
});
