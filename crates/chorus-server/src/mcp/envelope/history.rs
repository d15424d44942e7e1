//! `chorus_history`: read back messages sent and received.

use crate::mcp::fit_page;
use crate::mcp::shared_args::page_limit;
use crate::mcp::since_arg::SincePoint;
use crate::mcp::tool::{ToolDefinition, ToolKind, ToolOutput};
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::envelope;
use chorus_wire::contract::FieldCheck;
use chorus_wire::cursor::HistoryStart;
use chorus_wire::envelope::Envelope;
use chorus_wire::identity::AgentName;
use chorus_wire::message::HistoryRow;
use chorus_wire::{limits, wire_object};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub fn history_tools() -> Vec<ToolDefinition<ToolCall>> {
    vec![ToolDefinition::new(
        "chorus_history",
        "Read past messages",
        ToolKind::ReadOnly,
        HISTORY_DESCRIPTION,
        read_history,
    )]
}

const HISTORY_DESCRIPTION: &str = "Read back messages you sent and received, oldest first: the latest, or with \
    `since` the first after it. Go on from `next_since` while there is `more`.";

wire_object! {
    /// `chorus_history`
    ChorusHistoryArgs, refuses unknown => {
        /// Only with this agent.
        nullable peer: String = FieldCheck::Grammar(&AgentName::GRAMMAR);
        /// Only this conversation, among a thousand messages.
        nullable conversation_id: String = Envelope::SHAPE.check_of("conversation_id");
        /// An id (0: from the first) or an RFC 3339 time.
        nullable since: SincePoint = SincePoint::CHECK;
        /// 50 without it.
        nullable limit: usize = page_limit(limits::HISTORY_PAGE);
    }
}

#[derive(Serialize, ToSchema)]
struct HistoryPage {
    messages: Vec<HistoryRow>,
    /// Go on from here with `since`; absent when nothing was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_since: Option<u64>,
    /// There are more after these; without `since`, before them.
    more: bool,
}

async fn read_history(
    call: ToolCall,
    args: ChorusHistoryArgs,
) -> Result<ToolOutput<HistoryPage>, ToolError> {
    let limit = args.limit.unwrap_or(limits::TOOL_PAGE_DEFAULT);
    let since = args.since.map(SincePoint::to_history_start);
    // The filter by conversation runs after the query, so more rows are read than are shown.
    let scan_limit = if args.conversation_id.is_some() {
        limits::HISTORY_PAGE
    } else {
        limit
    };
    let found = envelope::search_messages(
        &call.principal,
        &call.state.hub,
        args.peer.as_deref(),
        since,
        scan_limit,
    )
    .await;
    let found = found.map_err(|error| ToolError::from(error).about_field("peer"))?;
    let mut messages = found.rows;
    let mut next_since = None;
    // The next page starts after the last row read, even when the filter dropped it.
    let last_scanned = messages.last().map(|row| row.id);
    if let Some(wanted) = &args.conversation_id {
        messages.retain(|row| conversation_id_of(row).as_ref() == Some(wanted));
    }
    let surplus = messages.len().saturating_sub(limit);
    let is_truncated = match since {
        Some(_) => {
            messages.truncate(limit);
            let is_truncated = fit_page::keep_first_fitting(&mut messages) || surplus > 0;
            next_since = messages.last().filter(|_| is_truncated).map(|row| row.id);
            is_truncated
        }
        None => {
            messages.drain(..surplus);
            fit_page::keep_last_fitting(&mut messages) || surplus > 0
        }
    };
    let requested_id = since.and_then(|since| match since {
        HistoryStart::AfterId(id) => Some(id),
        HistoryStart::FromTime(_) => None,
    });
    let next_since = next_since.or(last_scanned).or(requested_id);
    let more = is_truncated || found.has_more;
    // The result is part of a model's turn. The model gets it also when that cannot be recorded.
    let own_name = call.principal.require_agent()?.agent_id.clone();
    let unseen = messages
        .iter()
        .filter(|row| row.shown_at.is_none() && *row.receiver_id == *own_name);
    let trace_ids = unseen.map(|row| row.trace_id).collect();
    if let Err(error) = envelope::mark_all_shown(&call.principal, &call.state.hub, trace_ids).await
    {
        tracing::warn!(%error, "that messages were shown was not recorded");
    }
    let text = format!(
        "{} messages{}",
        messages.len(),
        if more { ", and there are more" } else { "" }
    );
    Ok(ToolOutput::new(
        text,
        HistoryPage {
            messages,
            next_since,
            more,
        },
    ))
}

fn conversation_id_of(row: &HistoryRow) -> Option<String> {
    #[derive(Deserialize)]
    struct ConversationField {
        conversation_id: Option<String>,
    }
    serde_json::from_str::<ConversationField>(row.envelope.get())
        .ok()?
        .conversation_id
}
