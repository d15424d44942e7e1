//! Waits for what becomes of a sent message: that it was shown, or answered.

use super::history::search_messages;
use super::status::get_message_status;
use crate::context::HubContext;
use crate::store::log;
use crate::{Principal, Result};
use chorus_wire::cursor::HistoryStart;
use chorus_wire::envelope::Envelope;
use chorus_wire::limits;
use chorus_wire::message::HistoryRow;
use chorus_wire::time::UnixMicros;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

/// First pause before the store is asked again. It doubles up to [`MAX_POLL_PAUSE`], so that many waits cost few reads. A stream
/// would hear it sooner, but would count as one that takes the agent's messages.
const FIRST_POLL_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause: a person or a model that waited for seconds does not notice one more.
const MAX_POLL_PAUSE: Duration = Duration::from_secs(1);

/// When the text of a sent message was shown to its receiver; `None` when it was not in time, or the hub is stopping.
pub async fn wait_until_shown(
    principal: &Principal,
    hub: &HubContext,
    trace_id: Uuid,
    max_wait: Duration,
) -> Result<Option<UnixMicros>> {
    let deadline = Instant::now() + max_wait;
    let trace_id = trace_id.to_string();
    let mut pause = FIRST_POLL_PAUSE;
    loop {
        let status = get_message_status(principal, hub, &trace_id).await?;
        if status.shown_at.is_some() || !pause_until_next_poll(hub, deadline, &mut pause).await {
            return Ok(status.shown_at);
        }
    }
}

/// A sent message whose answer is waited for.
pub struct AwaitedAnswer<'a> {
    pub trace_id: Uuid,
    pub receiver_id: &'a str,
    /// The answer is in the same conversation, or like the message in none.
    pub conversation_id: Option<&'a str>,
}

/// The first message of the receiver after a sent one; `None` when none came in time, or the hub is stopping.
pub async fn wait_for_answer(
    principal: &Principal,
    hub: &HubContext,
    sent: AwaitedAnswer<'_>,
    max_wait: Duration,
) -> Result<Option<HistoryRow>> {
    let own_name = principal.require_agent()?.agent_id.clone();
    let mut after = log::trace_id_seq(&sent.trace_id).to_u64();
    let deadline = Instant::now() + max_wait;
    let mut pause = FIRST_POLL_PAUSE;
    loop {
        let since = Some(HistoryStart::AfterId(after));
        let peer = Some(sent.receiver_id);
        let page = search_messages(principal, hub, peer, since, limits::TOOL_PAGE_DEFAULT).await?;
        after = page.rows.last().map_or(after, |row| row.id);
        let is_answer = |row: &HistoryRow| {
            let is_received = *row.receiver_id == *own_name && row.trace_id != sent.trace_id;
            is_received && is_in_conversation(row, sent.conversation_id)
        };
        let answer = page.rows.into_iter().find(is_answer);
        if answer.is_some() || !pause_until_next_poll(hub, deadline, &mut pause).await {
            return Ok(answer);
        }
    }
}

fn is_in_conversation(row: &HistoryRow, wanted: Option<&str>) -> bool {
    Envelope::parse(row.envelope.get()).is_ok_and(|envelope| envelope.conversation_id() == wanted)
}

/// False when the time is over, or the hub is stopping.
async fn pause_until_next_poll(hub: &HubContext, deadline: Instant, pause: &mut Duration) -> bool {
    let now = Instant::now();
    if now >= deadline || hub.live_streams().is_draining() {
        return false;
    }
    sleep_until(deadline.min(now + *pause)).await;
    *pause = (*pause * 2).min(MAX_POLL_PAUSE);
    true
}
