//! Addresses, handles and names: what is accepted is kept letter for letter, and the kept form names the same agent.

#![no_main]

use chorus_wire::identity::{Address, Handle, Name};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(address) = Address::parse("address", text) {
        assert_eq!(address.as_str(), text);
        assert_eq!(format!("{}@{}", address.name(), address.host()), text);
    }
    if let Some(handle) = Handle::parse(text) {
        assert_eq!(handle.as_str(), text);
    }
    if let Ok(name) = Name::parse("name", text) {
        let kept = name.canonical("chorus");
        // A short name of 128 characters is longer than an address may be once its host is added.
        if let Ok(again) = Name::parse("name", &kept) {
            assert_eq!(again.canonical("chorus"), kept);
        }
    }
});
