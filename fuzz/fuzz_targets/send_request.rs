//! An accepted send contains a valid envelope of limited length; its A2A message, if any, is a JSON object.

#![no_main]

use chorus_wire::{contract::parse_root, envelope::Envelope, limits, message::SendRequest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    if let Ok(send) = SendRequest::parse(body) {
        let printed = send.envelope.to_json();
        assert!(printed.chars().count() <= limits::ENVELOPE_CHARS);
        assert_eq!(
            Envelope::parse(&printed).expect("a printed envelope parses"),
            send.envelope
        );
        if let Some(message) = send.a2a_message {
            parse_root(message.as_bytes()).expect("an A2A message");
        }
    }
});
