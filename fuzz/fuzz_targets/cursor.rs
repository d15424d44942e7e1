//! A cursor that is accepted reads back as itself.

#![no_main]

use chorus_wire::cursor::Cursor;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(cursor) = text.parse::<Cursor>() {
        assert_eq!(
            cursor.to_string().parse::<Cursor>().expect("what was printed"),
            cursor
        );
    }
});
