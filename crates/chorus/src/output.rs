//! Prints results: text for people, or JSON lines for programs.

use crate::hidden_text;
use anstyle::{AnsiColor, Style};
use chorus_wire::message::GapEvent;
use serde::Serialize;
use std::io::{IsTerminal, Write};

pub const STRONG_STYLE: Style = Style::new().bold();
pub const FAINT_STYLE: Style = Style::new().dimmed();
pub const GOOD_STYLE: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
pub const BAD_STYLE: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));

/// Prints one result: as JSON with `--json`, else as the text of `human`.
pub fn print_result<T: Serialize>(json: bool, value: &T, human: impl FnOnce() -> String) {
    if json {
        print_json(&serde_json::to_string(value).unwrap_or_default());
    } else {
        print_line(&human());
    }
}

/// Prints one line of JSON, with hidden characters as escapes: the reader may be a terminal or a model.
pub fn print_json(json: &str) {
    print_line(&hidden_text::escape_json(json));
}

/// Prints a line and flushes it. Colours go only to terminals that allow them (NO_COLOR).
pub fn print_line(text: &str) {
    let mut out = anstream::stdout().lock();
    let written = writeln!(out, "{text}").and_then(|()| out.flush());
    // The reader closed the pipe because it has enough, such as `head`. That is no failure.
    if written.is_err_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe) {
        std::process::exit(0);
    }
}

pub fn paint_text(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Makes text from others safe for a terminal and for a model (SKL-17): nothing that a reader cannot see. Further lines
/// are indented, so that one message cannot look like two.
pub fn escape_controls(text: &str) -> String {
    hidden_text::remove_hidden(text)
        .replace("\r\n", "\n")
        .replace('\n', "\n    ")
}

/// `2026-03-22T04:30:05Z` of an RFC 3339 timestamp.
pub fn whole_seconds(instant: &str) -> String {
    match instant.get(..19) {
        Some(start) if instant.ends_with('Z') => format!("{start}Z"),
        Some(_) | None => escape_controls(instant),
    }
}

/// A session id for people: the first block of a UUID on a terminal, else the whole of it.
pub fn short_session(session: &str) -> String {
    let is_uuid = session.len() == 36 && uuid::Uuid::try_parse(session).is_ok();
    match is_uuid && std::io::stdout().is_terminal() {
        true => session[..8].to_owned(),
        false => escape_controls(session),
    }
}

/// Prints a note to standard error, for people only.
pub fn print_aside(json: bool, text: &str) {
    if !json {
        anstream::eprintln!("{}", paint_text(FAINT_STYLE, &escape_controls(text)));
    }
}

/// Sends log messages to standard error, one plain line each.
pub fn init_quiet_logging() {
    let filter =
        std::env::var("CHORUS_LOG").unwrap_or_else(|_| "chorus=warn,chorus_client=warn".into());
    let filter = tracing_subscriber::EnvFilter::try_new(filter).unwrap_or_default();
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let _ = log
        .without_time()
        .with_target(false)
        .with_ansi(false)
        .try_init();
}

/// A line for people about events that the hub deleted before they were read.
pub fn format_gap(gap: GapEvent) -> String {
    let GapEvent { from, to } = gap;
    paint_text(
        BAD_STYLE,
        &format!("some events after {from}, up to {to}, are gone: the hub no longer keeps them"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    // SKL-17
    #[test]
    fn foreign_text_cannot_control_the_terminal() {
        let hostile = "a\u{1b}[2Jb\u{7}c\u{202e}d\r\u{9b}31m\nbob@chorus: e";
        let shown = escape_controls(hostile);
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\r', '\u{202e}', '\u{9b}']));
        assert!(shown.ends_with("\n    bob@chorus: e"), "{shown}");
        assert_eq!(escape_controls("grüße\t你好 👋"), "grüße\t你好 👋");
    }
}
