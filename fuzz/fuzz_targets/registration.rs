//! A registration in either form names an agent by something that is a name.

#![no_main]

use chorus_wire::{identity::Name, register};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    for read in [
        register::Registration::parse(body),
        register::Registration::parse_operator(body),
    ] {
        if let Ok(registration) = read {
            assert_eq!(
                Name::parse("agent_id", &registration.agent_id).expect("a name"),
                registration.name
            );
            assert!(!matches!(registration.name, Name::Handle(_)));
        }
    }
    register::looks_like_market(body);
});
