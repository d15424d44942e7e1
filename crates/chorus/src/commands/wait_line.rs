//! The running line of a command that waits: how long it has waited, and what the hub knows of a message.

use super::duration::format_duration;
use crate::output;
use chorus_client::HubClient;
use chorus_wire::message::MessageStatus;
use std::convert::Infallible;
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
        output::print_aside(json, "Ctrl-C stops waiting; what was sent stays sent");
        Some(Self {
            started: Instant::now(),
            timeout,
            goal,
        })
    }

    /// Draws the state of a message and the time while `work` runs, and returns the outcome of `work`.
    pub async fn draw_message<T>(
        line: Option<Self>,
        client: &HubClient,
        trace_id: &str,
        work: impl Future<Output = T>,
    ) -> T {
        let Some(line) = line else {
            return work.await;
        };
        tokio::select! {
            outcome = work => outcome,
            never = line.repeat_message(client, trace_id) => match never {},
        }
    }

    /// Draws the time again and again.
    pub async fn repeat_time(line: Option<&Self>) -> Infallible {
        let Some(line) = line else {
            return std::future::pending().await;
        };
        loop {
            line.draw("");
            tokio::time::sleep(DRAW_INTERVAL).await;
        }
    }

    /// Clears the line before a result is printed in its place.
    pub fn clear(&self) {
        let mut out = std::io::stderr().lock();
        // Without a terminal there is nothing to draw on.
        let _ = out
            .write_all(CLEAR_LINE.as_bytes())
            .and_then(|()| out.flush());
    }

    /// Draws the line again and again. A hub that does not answer leaves the last known state.
    async fn repeat_message(&self, client: &HubClient, trace_id: &str) -> Infallible {
        let mut state = "sent".to_owned();
        loop {
            if let Ok(status) = client.fetch_message_status(trace_id).await {
                state = describe_state(&status);
            }
            self.draw(&format!("{state}; "));
            tokio::time::sleep(DRAW_INTERVAL).await;
        }
    }

    fn draw(&self, state: &str) {
        let text = format!(
            // Short: a line that is wrapped cannot be drawn over.
            "{state}waiting {}, {} of {}",
            self.goal,
            format_duration(self.started.elapsed()),
            format_duration(self.timeout)
        );
        self.clear();
        // Without colour where NO_COLOR is set; what clears the line is no colour.
        anstream::eprint!("{}", output::paint_text(output::FAINT_STYLE, &text));
    }
}

impl Drop for WaitLine {
    fn drop(&mut self) {
        self.clear();
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
