//! An accepted receiver's reply is a protocol reply, and parses back from its printed form.

#![no_main]

use chorus_wire::message::ReceiverReply;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    if let Ok(reply) = ReceiverReply::parse(body) {
        let printed = serde_json::to_vec(&reply).expect("a reply serialises");
        assert_eq!(
            ReceiverReply::parse(&printed).expect("a printed reply parses"),
            reply
        );
        assert!(ReceiverReply::is_protocol_reply(
            &serde_json::from_slice(&printed).expect("JSON")
        ));
    }
});
