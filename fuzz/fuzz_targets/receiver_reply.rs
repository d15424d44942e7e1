//! A reply that is accepted is one of the protocol, and reads back as itself.

#![no_main]

use chorus_wire::message::ReceiverReply;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    if let Ok(reply) = ReceiverReply::parse(body) {
        let printed = serde_json::to_vec(&reply).expect("it prints");
        assert_eq!(ReceiverReply::parse(&printed).expect("what was printed"), reply);
        assert!(ReceiverReply::is_protocol(
            &serde_json::from_slice(&printed).expect("JSON")
        ));
    }
});
