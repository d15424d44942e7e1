//! The SSE parser gives the same events and the same error for any chunking of the bytes.

#![no_main]

use chorus_wire::sse::{SseEvent, SseReadError, SseReader};
use libfuzzer_sys::fuzz_target;

fn read_chunks<'a>(
    chunks: impl Iterator<Item = &'a [u8]>,
) -> (Vec<SseEvent>, Result<(), SseReadError>) {
    let mut reader = SseReader::new(64);
    let mut events = Vec::new();
    for chunk in chunks {
        if let Err(error) = reader.read_chunk_into(chunk, &mut events) {
            return (events, Err(error));
        }
    }
    (events, Ok(()))
}

fuzz_target!(|input: (u8, &[u8])| {
    let (chunk_size, bytes) = input;
    let whole = read_chunks(std::iter::once(bytes));
    assert_eq!(
        read_chunks(bytes.chunks(usize::from(chunk_size).max(1))),
        whole
    );
    assert_eq!(read_chunks(bytes.chunks(1)), whole);
});
