//! An accepted envelope is printed on one line that parses back to it.

#![no_main]

use chorus_wire::envelope::Envelope;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(envelope) = Envelope::parse(text) {
        let printed = envelope.to_json();
        assert!(!printed.contains(['\n', '\r']));
        assert_eq!(
            Envelope::parse(&printed).expect("a printed envelope parses"),
            envelope
        );
    }
});
