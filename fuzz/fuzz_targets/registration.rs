//! An accepted registration of either form has a valid agent name that is not a handle.

#![no_main]

use chorus_wire::identity::AgentName;
use chorus_wire::registration::{RegistrationRequest, looks_like_market};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    for result in [
        RegistrationRequest::parse(body),
        RegistrationRequest::parse_operator(body),
    ] {
        if let Ok(registration) = result {
            assert_eq!(
                AgentName::parse("agent_id", &registration.agent_id).expect("a name"),
                registration.name
            );
            assert!(!matches!(registration.name, AgentName::Handle(_)));
        }
    }
    looks_like_market(body);
});
