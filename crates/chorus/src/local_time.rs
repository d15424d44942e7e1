//! Times for people: of their own time zone, and on a terminal with the date. `--json` keeps UTC.

use crate::output;
use jiff::{Timestamp, Zoned, tz::TimeZone};
use std::io::IsTerminal;

/// The time of something that happens now: `14:30:05`, and on a terminal with the date unless it is today.
pub fn live_time(instant: &str) -> String {
    let Some(at) = parse_local(instant) else {
        return output::escape_controls(instant);
    };
    let is_today = at.date() == Zoned::now().date();
    match std::io::stdout().is_terminal() && !is_today {
        true => format_date_time(&at),
        false => format_clock(&at),
    }
}

/// The time of something past: `2026-03-22 14:30:05` on a terminal. Elsewhere only the clock, for scripts that read it.
pub fn past_clock(instant: &str) -> String {
    match parse_local(instant) {
        Some(at) if std::io::stdout().is_terminal() => format_date_time(&at),
        Some(at) => format_clock(&at),
        None => output::escape_controls(instant),
    }
}

/// `2026-03-22 14:30:05` on a terminal, and RFC 3339 in UTC elsewhere.
pub fn date_time(instant: &str) -> String {
    match parse_local(instant) {
        Some(at) if std::io::stdout().is_terminal() => format_date_time(&at),
        Some(_) | None => output::whole_seconds(instant),
    }
}

fn parse_local(instant: &str) -> Option<Zoned> {
    let at: Timestamp = instant.parse().ok()?;
    Some(at.to_zoned(TimeZone::system()))
}

fn format_clock(at: &Zoned) -> String {
    at.strftime("%H:%M:%S").to_string()
}

fn format_date_time(at: &Zoned) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}
