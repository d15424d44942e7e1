//! A send that is accepted holds an envelope that is one, and forwards JSON if it forwards anything.

#![no_main]

use chorus_wire::{envelope::Envelope, json, limits, message::SendRequest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    if let Ok(send) = SendRequest::parse(body) {
        let printed = send.envelope.to_json();
        assert!(printed.chars().count() <= limits::ENVELOPE_CHARS);
        assert_eq!(
            Envelope::parse(&printed).expect("what was printed"),
            send.envelope
        );
        if let Some(wrapped) = send.wrapped {
            json::object(&wrapped).expect("an A2A message");
        }
    }
});
