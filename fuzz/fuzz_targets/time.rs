//! An accepted timestamp parses back from its printed form, and its two printed forms agree.

#![no_main]

use chorus_wire::time::UnixMicros;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some(at) = UnixMicros::parse(text) {
        let printed = at.to_string();
        assert_eq!(UnixMicros::parse(&printed), Some(at));
        assert_eq!(printed.len(), 27);
        assert_eq!(at.to_rfc3339_millis()[..23], printed[..23]);
    }
});
