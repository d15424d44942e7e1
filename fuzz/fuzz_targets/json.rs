//! The strict parser reads the same value as serde_json, and the canonical text is stable.

#![no_main]

use chorus_wire::json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let Ok(text) = json::decode_utf8(body) else {
        return;
    };
    if let Ok(value) = json::parse_value(text) {
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(text).expect("JSON"),
            value
        );
        let canonical = json::to_canonical_json(&value);
        let again = json::parse_value(&canonical).expect("the canonical text parses");
        assert_eq!(json::to_canonical_json(&again), canonical);
    }
});
