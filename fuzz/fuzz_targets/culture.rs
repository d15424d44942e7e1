//! An accepted language tag is ASCII, and its letter case does not matter.

#![no_main]

use chorus_wire::identity::check_culture_tag;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|tag: &str| {
    let accepted = check_culture_tag("culture", tag).is_ok();
    assert!(!accepted || tag.is_ascii());
    if tag.is_ascii() {
        assert_eq!(
            check_culture_tag("culture", &tag.to_ascii_uppercase()).is_ok(),
            accepted
        );
    }
});
