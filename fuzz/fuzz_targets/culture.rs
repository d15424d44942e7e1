//! A culture tag that is accepted is short ASCII, and its letter case does not matter.

#![no_main]

use chorus_wire::identity::culture;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|tag: &str| {
    let accepted = culture("culture", tag).is_ok();
    assert!(!accepted || tag.is_ascii());
    if tag.is_ascii() {
        assert_eq!(culture("culture", &tag.to_ascii_uppercase()).is_ok(), accepted);
    }
});
