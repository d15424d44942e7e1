//! An instant that is accepted reads back as itself, and its two texts agree.

#![no_main]

use chorus_wire::time::Micros;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some(at) = Micros::parse(text) {
        let printed = at.to_string();
        assert_eq!(Micros::parse(&printed), Some(at));
        assert_eq!(printed.len(), 27);
        assert_eq!(at.millis()[..23], printed[..23]);
    }
});
