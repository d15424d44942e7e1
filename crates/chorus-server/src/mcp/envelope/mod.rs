//! The tools of messages: send, inbox, history and the directory.

mod discover;
mod history;
mod inbox;
mod send;

use super::tool::ToolDefinition;
use super::tool_call::ToolCall;
use crate::http::route_scopes::RequiredScope;
use chorus_wire::agent_key::KeyScope;

pub fn envelope_tools() -> Vec<ToolDefinition<ToolCall>> {
    let read = RequiredScope::Needs(KeyScope::Read);
    let send = RequiredScope::Needs(KeyScope::Send);
    ToolDefinition::with_scope(send, send::send_tools())
        .chain(ToolDefinition::with_scope(read, inbox::inbox_tools()))
        .chain(ToolDefinition::with_scope(read, history::history_tools()))
        .chain(ToolDefinition::with_scope(
            RequiredScope::Any,
            discover::discover_tools(),
        ))
        .collect()
}
