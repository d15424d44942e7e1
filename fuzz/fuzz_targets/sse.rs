//! The reader gives the same events and the same fault however the bytes are cut.

#![no_main]

use chorus_wire::sse::{Event, ReadError, Reader};
use libfuzzer_sys::fuzz_target;

fn read<'a>(chunks: impl Iterator<Item = &'a [u8]>) -> (Vec<Event>, Result<(), ReadError>) {
    let (mut reader, mut events) = (Reader::new(64), Vec::new());
    for chunk in chunks {
        if let Err(fault) = reader.read_into(chunk, &mut events) {
            return (events, Err(fault));
        }
    }
    (events, Ok(()))
}

fuzz_target!(|input: (u8, &[u8])| {
    let (cut, bytes) = input;
    let whole = read(std::iter::once(bytes));
    assert_eq!(read(bytes.chunks(usize::from(cut).max(1))), whole);
    assert_eq!(read(bytes.chunks(1)), whole);
});
