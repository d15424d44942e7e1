//! What is open under the own handle, for tools that read it.

use super::sender::own_handle;
use crate::mcp::tool_call::ToolCall;
use crate::mcp::tool_error::ToolError;
use chorus_hub::frame;
use chorus_wire::frame::{Frame, OpenItem, OpenItems};

/// An open item with its frame.
pub struct ParsedOpenItem {
    pub item: OpenItem,
    pub frame: Frame,
}

/// All items that are open under the own handle and its organisations, newest first.
pub async fn list_open_items(call: &ToolCall) -> Result<Vec<ParsedOpenItem>, ToolError> {
    let handle = own_handle(call)?;
    let frames = call.state.hub.frames();
    let mut items = Vec::new();
    let mut after = None;
    loop {
        let page: OpenItems =
            frame::list_open_items(&call.principal, frames, handle.as_str(), after.as_deref())
                .await?;
        let parse = |item: OpenItem| {
            let frame = Frame::parse(item.frame.get()).ok()?;
            Some(ParsedOpenItem { item, frame })
        };
        items.extend(page.items.into_iter().filter_map(parse));
        after = page.next;
        if after.is_none() {
            return Ok(items);
        }
    }
}
