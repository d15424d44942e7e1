//! Strict JSON accepts nothing that the lenient parser refuses, and its canonical text means the same.

#![no_main]

use chorus_wire::json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|body: &[u8]| {
    let Ok(text) = json::text(body) else { return };
    if let Ok(value) = json::value(text) {
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(text).expect("JSON"),
            value
        );
        let canonical = json::canonical(&value);
        let again = json::value(&canonical).expect("what was printed");
        assert_eq!(json::canonical(&again), canonical);
    }
});
