//! Server-Sent Events: formatting an event, and parsing a stream from chunks of any size (R-25, failure 19).

use crate::cursor::Cursor;
use bytes::Bytes;
use std::fmt::{self, Write};

/// Formats one event with LF line ends, one space after each colon and one data line. `data` is JSON on one line.
pub fn format_event(name: &str, id: Option<Cursor>, data: &str) -> Bytes {
    let mut out = String::with_capacity(name.len() + data.len() + 48);
    // Writing to a String cannot fail.
    let _ = write_event(&mut out, name, id, data);
    Bytes::from(out)
}

pub(crate) fn write_event(
    out: &mut String,
    name: &str,
    id: Option<Cursor>,
    data: impl fmt::Display,
) -> fmt::Result {
    match id {
        Some(id) => write!(out, "event: {name}\nid: {id}\ndata: ")?,
        None => write!(out, "event: {name}\ndata: ")?,
    }
    let data_start = out.len();
    write!(out, "{data}")?;
    debug_assert!(
        !out[data_start..].contains(['\n', '\r']),
        "event data is one line"
    );
    out.write_str("\n\n")
}

/// One parsed event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    pub name: String,
    pub id: Option<String>,
    pub data: String,
    pub retry: Option<u64>,
}

/// Why a stream cannot be parsed any further.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum SseReadError {
    #[error("the stream sent an event of more than {0} bytes")]
    TooLong(usize),
    #[error("the stream is not UTF-8")]
    NotUtf8,
}

/// Parses events from chunks of any size. Lines end in LF, CR or CRLF; a chunk may end inside a line end or a character.
#[derive(Debug)]
pub struct SseReader {
    line: Vec<u8>,
    after_cr: bool,
    first_line: bool,
    max_event_bytes: usize,
    name: String,
    id: Option<String>,
    data: Option<String>,
    retry: Option<u64>,
    failed: Option<SseReadError>,
}

impl SseReader {
    /// An event of more than `max_event_bytes` is an error.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            line: Vec::new(),
            after_cr: false,
            first_line: true,
            max_event_bytes,
            name: String::new(),
            id: None,
            data: None,
            retry: None,
            failed: None,
        }
    }

    /// Parses a chunk and returns the events that it completes.
    pub fn read_chunk(&mut self, chunk: &[u8]) -> Result<Vec<SseEvent>, SseReadError> {
        let mut events = Vec::new();
        self.read_chunk_into(chunk, &mut events).map(|()| events)
    }

    /// Like [`Self::read_chunk`], but keeps the events that were complete before an error. Every later call returns the
    /// same error.
    pub fn read_chunk_into(
        &mut self,
        chunk: &[u8],
        events: &mut Vec<SseEvent>,
    ) -> Result<(), SseReadError> {
        match self.failed {
            Some(error) => Err(error),
            None => self
                .read_lines(chunk, events)
                .inspect_err(|error| self.failed = Some(*error)),
        }
    }

    fn read_lines(&mut self, chunk: &[u8], events: &mut Vec<SseEvent>) -> Result<(), SseReadError> {
        let mut rest = chunk;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_cr) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|b| matches!(b, b'\n' | b'\r'));
            let part = &rest[..end.unwrap_or(rest.len())];
            if self.buffered_bytes() + part.len() > self.max_event_bytes {
                return Err(SseReadError::TooLong(self.max_event_bytes));
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { break };
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            events.extend(self.handle_line(&line)?);
        }
        Ok(())
    }

    /// Bytes kept of the current event. Comments do not count: a stream may consist of keepalives for days.
    fn buffered_bytes(&self) -> usize {
        self.line.len()
            + self.name.len()
            + self.id.as_ref().map_or(0, String::len)
            + self.data.as_ref().map_or(0, String::len)
    }

    fn handle_line(&mut self, line: &[u8]) -> Result<Option<SseEvent>, SseReadError> {
        let mut line = std::str::from_utf8(line).map_err(|_| SseReadError::NotUtf8)?;
        if std::mem::take(&mut self.first_line) {
            line = line.strip_prefix('\u{feff}').unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.take_event());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.name = value.to_owned(),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" if value.bytes().all(|b| b.is_ascii_digit()) => {
                self.retry = value.parse().ok().or(self.retry)
            }
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // Comments (an empty field name) and unknown fields.
            _ => {}
        }
        Ok(None)
    }

    fn take_event(&mut self) -> Option<SseEvent> {
        let name = std::mem::take(&mut self.name);
        let id = self.id.take();
        let retry = self.retry.take();
        let data = self.data.take()?;
        Some(SseEvent {
            name: if name.is_empty() {
                "message".into()
            } else {
                name
            },
            id,
            data,
            retry,
        })
    }
}
