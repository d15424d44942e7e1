//! Accepted addresses and handles keep their text, and the canonical text of a name names the same agent.

#![no_main]

use chorus_wire::identity::{AgentAddress, AgentName, Handle};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(address) = AgentAddress::parse("address", text) {
        assert_eq!(address.as_str(), text);
        assert_eq!(format!("{}@{}", address.name(), address.host()), text);
    }
    if let Some(handle) = Handle::parse(text) {
        assert_eq!(handle.as_str(), text);
    }
    if let Ok(name) = AgentName::parse("name", text) {
        let canonical = name.canonical_text("chorus");
        // The canonical text of a long short name exceeds the limit of an address, because it includes the host.
        if let Ok(again) = AgentName::parse("name", &canonical) {
            assert_eq!(again.canonical_text("chorus"), canonical);
        }
    }
});
