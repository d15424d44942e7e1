//! An accepted cursor parses back from its printed form.

#![no_main]

use chorus_wire::cursor::Cursor;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(cursor) = text.parse::<Cursor>() {
        assert_eq!(
            cursor
                .to_string()
                .parse::<Cursor>()
                .expect("a printed cursor parses"),
            cursor
        );
    }
});
