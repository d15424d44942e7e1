//! The frame tools: announcements, claims, questions and live sessions (FRM-96).

mod announce;
mod locks;
mod open_items;
mod query;
mod recent_frames;
mod resource_claims;
mod sender;
mod sessions;

use super::tool::ToolDefinition;
use super::tool_call::ToolCall;

pub fn frame_tools() -> Vec<ToolDefinition<ToolCall>> {
    [
        announce::announce_tools(),
        locks::lock_tools(),
        query::query_tools(),
        sessions::session_tools(),
        recent_frames::recent_frame_tools(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
