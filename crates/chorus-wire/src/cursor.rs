//! The cursor: the position that an SSE `id:` shows and that `since` and `Last-Event-ID` take (invariant 5).

use crate::time::UnixMicros;
use std::{fmt, str::FromStr};

/// A position in the log (`seq`), or in a handle's frame ring (`epoch-seq`; a restarted hub or a recreated frame stream
/// has another epoch).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cursor {
    pub epoch: u64,
    pub seq: u64,
}

impl Cursor {
    /// The position before the first entry.
    pub const START: Cursor = Cursor { epoch: 0, seq: 0 };

    /// A position in the durable log.
    pub const fn from_log_seq(seq: u64) -> Self {
        Self { epoch: 0, seq }
    }

    /// The length of its text, without writing it.
    pub fn text_bytes(self) -> usize {
        let digits = |number: u64| number.checked_ilog10().map_or(1, |log| log as usize + 1);
        match self.epoch {
            0 => digits(self.seq),
            epoch => digits(epoch) + 1 + digits(self.seq),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.epoch == 0 {
            write!(f, "{}", self.seq)
        } else {
            write!(f, "{}-{}", self.epoch, self.seq)
        }
    }
}

/// Digits only: no sign, no blank, at most `i64::MAX`, which both databases can store.
fn parse_number(text: &str) -> Option<u64> {
    let is_number =
        !text.is_empty() && text.len() <= 19 && text.bytes().all(|b| b.is_ascii_digit());
    if is_number {
        text.parse().ok().filter(|n| *n <= i64::MAX as u64)
    } else {
        None
    }
}

impl FromStr for Cursor {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = match text.split_once('-') {
            None => parse_number(text).map(Cursor::from_log_seq),
            Some((epoch, seq)) => match (parse_number(epoch), parse_number(seq)) {
                (Some(epoch), Some(seq)) if epoch > 0 => Some(Cursor { epoch, seq }),
                (Some(_) | None, Some(_) | None) => None,
            },
        };
        parsed.ok_or_else(|| crate::Error::validation("the cursor is not one this hub gave out"))
    }
}

/// Where a page of the log or the replay of a stream starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryStart {
    /// Strictly after this id.
    AfterId(u64),
    /// At or after this instant.
    FromTime(UnixMicros),
}

/// Where a reader asks its stream to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ResumePoint {
    /// With the next event; nothing is replayed.
    #[default]
    Now,
    After(Cursor),
    /// The reader sent an id that no hub gave out.
    Unknown,
}

impl ResumePoint {
    /// The one parser of `Last-Event-ID` and `since` (invariant 5). An empty text is none: a browser sends it before the first
    /// id. Each kind of stream decides what [`ResumePoint::Unknown`] means: durable streams refuse it, frame streams report a gap.
    pub fn parse(text: &str) -> Self {
        if text.is_empty() {
            return Self::Now;
        }
        text.parse().map_or(Self::Unknown, Self::After)
    }
}
