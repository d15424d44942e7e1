//! The running line of a command that waits: how long it has waited, and what the hub knows of the message.

use super::duration::format_duration;
use crate::output;
use chorus_client::HubClient;
use chorus_wire::message::MessageStatus;
use std::io::{IsTerminal, Write};
use std::time::Duration;
use tokio::time::Instant;

/// How often the line is drawn, and the hub is asked for the state.
const DRAW_INTERVAL: Duration = Duration::from_secs(1);
/// Back to the first column, and clear to the end of the line.
const CLEAR_LINE: &str = "\r\x1b[K";

/// A line on standard error, which is a terminal. It is gone when this is dropped.
pub struct WaitLine {
    started: Instant,
    timeout: Duration,
    goal: &'static str,
}

impl WaitLine {
    /// `None` where no person sees it: for JSON, and without a terminal.
    pub fn begin(json: bool, goal: &'static str, timeout: Duration) -> Option<Self> {
        if json || !std::io::stderr().is_terminal() {
            return None;
        }
        output::print_aside(json, "Ctrl-C stops waiting, the message stays sent");
        Some(Self {
            started: Instant::now(),
            timeout,
            goal,
        })
    }

    /// Draws the line again and again; it never returns. A hub that does not answer leaves the last known state.
    pub async fn draw(&self, client: &HubClient, trace_id: &str) {
        let mut state = "sent".to_owned();
        loop {
            if let Ok(status) = client.fetch_message_status(trace_id).await {
                state = describe_state(&status);
            }
            let text = format!(
                // Short: a line that is wrapped cannot be drawn over.
                "{state}; waiting until it is {}, {} of {}",
                self.goal,
                format_duration(self.started.elapsed()),
                format_duration(self.timeout)
            );
            let line = output::paint_text(output::FAINT_STYLE, &text);
            write_error(&format!("{CLEAR_LINE}{line}"));
            tokio::time::sleep(DRAW_INTERVAL).await;
        }
    }
}

impl Drop for WaitLine {
    fn drop(&mut self) {
        write_error(CLEAR_LINE);
    }
}

/// The farthest of the four facts.
fn describe_state(status: &MessageStatus) -> String {
    let is_shown = status.shown_at.is_some() && status.acknowledged_at.is_none();
    match is_shown {
        true => "shown".to_owned(),
        false => output::escape_controls(&status.status),
    }
}

fn write_error(text: &str) {
    let mut out = std::io::stderr().lock();
    // Without a terminal there is nothing to draw on.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
