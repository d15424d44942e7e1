//! The wire types of the market: credits, transfers, skills, jobs and reputation (the jobs document).

pub mod credits;
pub mod discover;
pub mod heartbeat;
pub mod job;
pub mod reputation;
pub mod skill;
pub mod transfer;

use crate::{Error, Result, json::JsonFields, time::UnixMicros};

/// Checks the id of a job or a transfer: any UUID, or another opaque id.
pub fn check_opaque_id(field: &str, text: String) -> Result<String> {
    let is_id_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-');
    if (1..=128).contains(&text.len()) && text.bytes().all(is_id_byte) {
        Ok(text)
    } else {
        Err(Error::validation(format!(
            "{field} must be a UUID, or 1 to 128 of letters, digits, '.', '_', ':' and '-'"
        )))
    }
}

/// Takes the optional `timestamp_utc`, which is kept as the client wrote it (JOB-04).
fn take_timestamp(fields: &mut JsonFields) -> Result<Option<String>> {
    let text = fields.optional_string("timestamp_utc")?;
    match &text {
        Some(text) if UnixMicros::parse(text).is_none() => Err(Error::validation(
            "timestamp_utc must be an RFC 3339 instant such as 2026-02-11T14:15:09Z",
        )),
        Some(_) | None => Ok(text),
    }
}
