//! Events as chunks of an HTTP/1.1 body, one chunk per event. A reader that takes what one chunk brings gets whole
//! events, also when several are written at once. The framing is part of the bytes that all streams share.

use crate::{cursor::Cursor, limits, sse};
use bytes::Bytes;
use std::fmt::{self, Write};

/// Keeps proxies and readers from closing a quiet stream.
pub const KEEPALIVE_CHUNK: &[u8] = b"d\r\n: keepalive\n\n\r\n";
/// Ends the body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Room for the size of a chunk and its line end: 16 hexadecimal digits are all of a `usize`.
const SIZE_LINE_BYTES: usize = 18;
const LINE_END: &str = "\r\n";

/// Formats one event as one chunk; `data` is JSON on one line.
pub fn format_event_chunk(name: &str, id: Option<Cursor>, data: &str) -> Bytes {
    let event_bytes = name.len() + data.len() + 64;
    build_chunk(event_bytes, |out| sse::write_event(out, name, id, data))
}

/// Formats one event whose data is written into the chunk, without a copy in between. `data_bytes` is about its length.
pub fn format_written_chunk(
    name: &str,
    id: Option<Cursor>,
    data_bytes: usize,
    data: fmt::Arguments<'_>,
) -> Bytes {
    build_chunk(name.len() + data_bytes + 64, |out| {
        sse::write_event(out, name, id, data)
    })
}

/// The first event of a stream as a chunk, with the pause before a reconnect and the id from which a stream that breaks at once
/// can resume. `retry` is part of a real event because some readers turn a lone `retry` into an empty event.
pub fn format_opening_chunk(name: &str, id: Option<Cursor>, data: &str) -> Bytes {
    let retry = limits::STREAM_RECONNECT_DELAY.as_millis();
    build_chunk(name.len() + data.len() + 80, |out| match id {
        Some(id) => write!(
            out,
            "event: {name}\nid: {id}\nretry: {retry}\ndata: {data}\n\n"
        ),
        None => write!(out, "event: {name}\nretry: {retry}\ndata: {data}\n\n"),
    })
}

/// The last event of a stream as a chunk. `retry_ms` is the pause before a reconnect.
pub fn format_closing_chunk(reason: &str, retry_ms: u64) -> Bytes {
    build_chunk(96, |out| {
        write!(
            out,
            "event: closing\nretry: {retry_ms}\ndata: {{\"reason\":\"{reason}\"}}\n\n"
        )
    })
}

/// Writes the event behind room for its size, then the size up against it. The event is not copied to put its size first.
fn build_chunk(
    expected_bytes: usize,
    write_event: impl FnOnce(&mut String) -> fmt::Result,
) -> Bytes {
    let mut out = String::with_capacity(SIZE_LINE_BYTES + expected_bytes + LINE_END.len());
    out.push_str("                ");
    out.push_str(LINE_END);
    // Writing to a String cannot fail.
    let _ = write_event(&mut out);
    let event_bytes = out.len() - SIZE_LINE_BYTES;
    out.push_str(LINE_END);
    let mut chunk = out.into_bytes();
    let mut start = SIZE_LINE_BYTES - LINE_END.len();
    let mut rest = event_bytes;
    while rest > 0 || start == SIZE_LINE_BYTES - LINE_END.len() {
        start -= 1;
        chunk[start] = b"0123456789abcdef"[rest % 16];
        rest /= 16;
    }
    Bytes::from(chunk).slice(start..)
}

/// The data line of an event and the end of its chunk, shared by streams that give the event different ids.
/// [`write_chunk_head`] writes what comes before it. `data` is JSON on one line.
pub fn format_chunk_data(data: &str) -> Bytes {
    debug_assert!(!data.contains(['\n', '\r']), "event data is one line");
    Bytes::from(format!("data: {data}\n\n{LINE_END}"))
}

/// The beginning of a chunk: its size, and the name and the id of its event. `chunk_data` is the rest, of
/// [`format_chunk_data`].
pub fn write_chunk_head(out: &mut Vec<u8>, name: &str, id: Cursor, chunk_data: &[u8]) {
    let head_bytes = "event: \nid: \n".len() + name.len() + id.text_bytes();
    let event_bytes = head_bytes + chunk_data.len() - LINE_END.len();
    // One text for the whole head: this runs for each session that reads the event.
    let head = format!("{event_bytes:x}{LINE_END}event: {name}\nid: {id}\n");
    out.extend_from_slice(head.as_bytes());
}

/// Takes the framing off again, for HTTP/1.0 readers and for readers inside the hub. Pieces may end anywhere.
#[derive(Debug, Default)]
pub struct ChunkDecoder {
    position: ChunkPosition,
}

#[derive(Debug)]
enum ChunkPosition {
    /// In the size line, with the digits so far.
    Size(usize),
    /// In the event, with this many bytes to come.
    Event(usize),
    /// In the line end after the event.
    End,
}

impl Default for ChunkPosition {
    fn default() -> Self {
        Self::Size(0)
    }
}

impl ChunkDecoder {
    /// The bytes of events in `piece`, without a copy.
    pub fn decode_piece(&mut self, mut piece: Bytes) -> Vec<Bytes> {
        let mut events = Vec::new();
        while let Some(byte) = piece.first().copied() {
            match &mut self.position {
                ChunkPosition::Size(size) => {
                    let _ = piece.split_to(1);
                    match (byte as char).to_digit(16) {
                        Some(digit) => *size = size.wrapping_mul(16) + digit as usize,
                        None if byte == b'\n' => self.position = ChunkPosition::Event(*size),
                        None => {}
                    }
                }
                ChunkPosition::Event(0) => self.position = ChunkPosition::End,
                ChunkPosition::Event(left) => {
                    let taken = piece.split_to(piece.len().min(*left));
                    *left -= taken.len();
                    events.push(taken);
                }
                ChunkPosition::End => {
                    let _ = piece.split_to(1);
                    if byte == b'\n' {
                        self.position = ChunkPosition::Size(0);
                    }
                }
            }
        }
        events
    }
}

/// Parses the events of a stream inside the hub.
#[derive(Debug)]
pub struct EventChunkReader {
    decoder: ChunkDecoder,
    reader: sse::SseReader,
}

impl EventChunkReader {
    /// An event of more than `max_event_bytes` ends the reading.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            decoder: ChunkDecoder::default(),
            reader: sse::SseReader::new(max_event_bytes),
        }
    }

    /// The events that these pieces complete.
    pub fn read_pieces(&mut self, pieces: impl IntoIterator<Item = Bytes>) -> Vec<sse::SseEvent> {
        let mut events = Vec::new();
        for part in pieces
            .into_iter()
            .flat_map(|piece| self.decoder.decode_piece(piece))
        {
            if self.reader.read_chunk_into(&part, &mut events).is_err() {
                break;
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode_all(bytes: &[u8], piece_bytes: usize) -> String {
        let mut decoder = ChunkDecoder::default();
        let events = bytes
            .chunks(piece_bytes)
            .flat_map(|piece| decoder.decode_piece(Bytes::copy_from_slice(piece)))
            .fold(Vec::new(), |mut all, event| {
                all.extend_from_slice(&event);
                all
            });
        String::from_utf8(events).unwrap()
    }

    /// one chunk is one event, whatever its length.
    #[test]
    fn an_event_is_one_chunk_of_its_own_length() {
        for length in [0, 1, 7, 200, 5_000, 70_000] {
            let data = "é".repeat(length);
            let event = format!("event: message\nid: 3-9\ndata: {data}\n\n");
            let expected = format!("{:x}\r\n{event}\r\n", event.len());
            let cursor = Cursor { epoch: 3, seq: 9 };
            let whole = format_event_chunk("message", Some(cursor), &data);
            assert_eq!(whole, expected.as_bytes());

            let shared = format_chunk_data(&data);
            let mut parts = Vec::new();
            write_chunk_head(&mut parts, "message", cursor, &shared);
            parts.extend_from_slice(&shared);
            assert_eq!(parts, expected.as_bytes());

            for piece_bytes in [1, 2, 3, 64, parts.len()] {
                assert_eq!(decode_all(&parts, piece_bytes), event);
            }
        }
    }

    #[test]
    fn the_length_of_a_cursor_is_that_of_its_text() {
        for epoch in [0, 1, 10, u64::MAX] {
            for seq in [0, 1, 9, 10, 99, 100, u64::MAX] {
                let cursor = Cursor { epoch, seq };
                assert_eq!(cursor.text_bytes(), cursor.to_string().len());
            }
        }
    }

    #[test]
    fn the_fixed_chunks_have_their_lengths() {
        for chunk in [
            KEEPALIVE_CHUNK.to_vec(),
            format_closing_chunk("shutdown", 1500).to_vec(),
            format_opening_chunk("connected", Some(Cursor::START), "{}").to_vec(),
        ] {
            let text = String::from_utf8(chunk).unwrap();
            let (size, rest) = text.split_once(LINE_END).unwrap();
            let event = rest.strip_suffix(LINE_END).unwrap();
            assert_eq!(usize::from_str_radix(size, 16).unwrap(), event.len());
        }
    }

    #[test]
    fn several_chunks_in_one_piece_are_decoded_in_order() {
        let mut bytes = KEEPALIVE_CHUNK.to_vec();
        bytes.extend_from_slice(&format_event_chunk("a", None, "1"));
        bytes.extend_from_slice(&format_event_chunk("b", None, "2"));
        let expected = ": keepalive\n\nevent: a\ndata: 1\n\nevent: b\ndata: 2\n\n";
        for piece_bytes in 1..bytes.len() {
            assert_eq!(decode_all(&bytes, piece_bytes), expected);
        }
    }
}
