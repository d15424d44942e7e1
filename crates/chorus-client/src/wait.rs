//! Waits for what becomes of a sent message: that it was shown, or answered.

use crate::envelope::AcceptedMessage;
use crate::{HubClient, Result};
use chorus_wire::envelope::Envelope;
use chorus_wire::message::{HistoryRow, MessageStatus};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How often the hub is asked. A stream would hear it sooner, but would count as one that takes the agent's messages.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

impl HubClient {
    /// Waits until the text of a sent message was shown to its receiver; `None` when the time is over.
    pub async fn wait_until_shown(
        &self,
        trace_id: &str,
        timeout: Duration,
    ) -> Result<Option<MessageStatus>> {
        let deadline = Instant::now() + timeout;
        loop {
            let status = self.fetch_message_status(trace_id).await?;
            if status.shown_at.is_some() {
                return Ok(Some(status));
            }
            if !pause_until_next_poll(deadline).await {
                return Ok(None);
            }
        }
    }

    /// Waits for a message of `peer` that came after a sent one, in the same conversation if that is in one; `None` when the
    /// time is over.
    pub async fn wait_for_answer(
        &self,
        sent: &AcceptedMessage,
        peer: &str,
        conversation_id: Option<&str>,
        timeout: Duration,
    ) -> Result<Option<HistoryRow>> {
        let deadline = Instant::now() + timeout;
        let mut since = sent.at.clone();
        let mut is_after_sent = false;
        loop {
            let rows = self.fetch_history(Some(&since)).await?;
            let is_last_page = rows.is_empty();
            for row in rows {
                since = row.id.to_string();
                let is_answer = row.sender_id == peer
                    && conversation_id.is_none_or(|wanted| is_in_conversation(&row, wanted));
                if is_after_sent && is_answer {
                    return Ok(Some(row));
                }
                is_after_sent |= row.trace_id == sent.sent.trace_id;
            }
            if is_last_page && !pause_until_next_poll(deadline).await {
                return Ok(None);
            }
        }
    }
}

fn is_in_conversation(row: &HistoryRow, wanted: &str) -> bool {
    Envelope::parse(row.envelope.get())
        .is_ok_and(|envelope| envelope.conversation_id() == Some(wanted))
}

/// False when the time is over.
async fn pause_until_next_poll(deadline: Instant) -> bool {
    let now = Instant::now();
    if now >= deadline {
        return false;
    }
    sleep_until(deadline.min(now + POLL_INTERVAL)).await;
    true
}
