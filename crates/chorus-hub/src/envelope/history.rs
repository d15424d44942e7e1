//! Message history: what an agent sent and received, in log order (TRN-56, R-15).

use crate::context::HubContext;
use crate::store::{DbError, DeliveryState, LogEntry, LogSeq, log, log_start, messages};
use crate::{Principal, Result, identity};
use chorus_wire::cursor::HistoryStart;
use chorus_wire::identity::AgentName;
use chorus_wire::message::{DeliveredVia, HistoryRow};
use chorus_wire::{ErrorCode, limits};
use serde_json::value::RawValue;

/// `GET /agent/messages`
pub async fn list_message_history(
    principal: &Principal,
    hub: &HubContext,
    since: Option<HistoryStart>,
    limit: usize,
) -> Result<MessagePage> {
    let agent_id = principal.require_agent()?.id;
    let limit = limit.clamp(1, limits::HISTORY_PAGE);
    let indexed = hub.store().indexed_seq();
    let page = hub
        .store()
        .read(async move |tx| {
            let after = match since {
                None => LogSeq::START,
                Some(start) => log_start::find_start_seq(tx, start).await?,
            };
            Ok(messages::list_message_history(tx, agent_id, after, indexed, limit).await?)
        })
        .await?;
    let salt = hub.store().trace_salt;
    let rows = page
        .entries
        .into_iter()
        .map(|entry| history_row(entry, salt))
        .collect::<std::result::Result<_, _>>()?;
    Ok(MessagePage {
        rows,
        has_more: !page.is_complete,
    })
}

/// One page of messages, oldest first.
#[derive(Debug)]
pub struct MessagePage {
    pub rows: Vec<HistoryRow>,
    /// Whether there are more messages: after the last row, or, when the latest were requested,
    /// before the first.
    pub has_more: bool,
}

impl MessagePage {
    /// The `since` of the next page, if there is one.
    pub fn next_cursor(&self) -> Option<String> {
        let last_row = self.rows.last().filter(|_| self.has_more)?;
        Some(last_row.id.to_string())
    }
}

/// Lists messages that this agent sent and received; with `peer`, only those exchanged with that
/// agent. With `since`, the page holds the first messages after it; without, the latest.
pub async fn search_messages(
    principal: &Principal,
    hub: &HubContext,
    peer: Option<&str>,
    since: Option<HistoryStart>,
    limit: usize,
) -> Result<MessagePage> {
    let agent_id = principal.require_agent()?.id;
    let peer = match peer {
        Some(name) => Some(
            identity::find_agent(hub.identity(), &AgentName::parse("peer", name)?)
                .await?
                .ok_or(ErrorCode::AgentNotFound)?
                .id,
        ),
        None => None,
    };
    let limit = limit.clamp(1, limits::HISTORY_PAGE);
    let indexed = hub.store().indexed_seq();
    let page = hub
        .store()
        .read(async move |tx| {
            let after = match since {
                None => None,
                Some(start) => Some(log_start::find_start_seq(tx, start).await?),
            };
            Ok(messages::search_messages(tx, agent_id, peer, after, indexed, limit).await?)
        })
        .await?;
    let salt = hub.store().trace_salt;
    let rows = page
        .entries
        .into_iter()
        .map(|entry| history_row(entry, salt))
        .collect::<std::result::Result<_, _>>()?;
    Ok(MessagePage {
        rows,
        has_more: !page.is_complete,
    })
}

pub(super) fn history_row(entry: LogEntry, salt: u32) -> std::result::Result<HistoryRow, DbError> {
    Ok(HistoryRow {
        id: entry.seq.to_u64(),
        trace_id: log::compute_trace_id(entry.seq, entry.at, salt),
        sender_id: entry.actor_name.to_string(),
        receiver_id: entry.subject_name.to_string(),
        envelope: RawValue::from_string(entry.body.to_string())
            .map_err(|e| DbError::Other(e.to_string()))?,
        delivered_via: delivered_via(entry.delivery),
        timestamp: entry.at,
        shown_at: entry.shown_at,
    })
}

/// The wire's name for a delivery state. Until its webhook has answered, a message counts as
/// queued.
pub(super) fn delivered_via(delivery_state: Option<DeliveryState>) -> DeliveredVia {
    match delivery_state {
        Some(DeliveryState::Sse) => DeliveredVia::Sse,
        Some(DeliveryState::Webhook) => DeliveredVia::Webhook,
        Some(DeliveryState::Failed) => DeliveredVia::Failed,
        Some(DeliveryState::Queued | DeliveryState::Pending) | None => DeliveredVia::Queued,
    }
}
