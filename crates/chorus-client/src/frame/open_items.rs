//! Open items as a session reads them: the frame that opened each, and when it ends by this machine's clock.

use chorus_wire::frame::{Frame, OpenItem, OpenItemKind};
use chorus_wire::time::UnixMicros;
use std::time::Duration;
use uuid::Uuid;

/// How a session that takes work over names the handover in its own frame: frames refer to content, they do not contain
/// it (FRM-47).
pub fn format_frame_ref(id: &Uuid) -> String {
    format!("frame:{id}")
}

/// An open item with its frame.
#[derive(Clone, Debug)]
pub struct ParsedOpenItem {
    pub kind: OpenItemKind,
    pub item: OpenItem,
    pub frame: Frame,
    /// By this machine's clock, which may differ from the hub's.
    pub expires_at: UnixMicros,
}

/// Parses the items that this client understands, oldest first.
pub fn parse_open_items(items: Vec<OpenItem>, now: UnixMicros) -> Vec<ParsedOpenItem> {
    let parse = |item: OpenItem| {
        Some(ParsedOpenItem {
            kind: item.kind()?,
            frame: Frame::parse(item.frame.get()).ok()?,
            expires_at: now.saturating_add(Duration::from_millis(item.left_ms)),
            item,
        })
    };
    items.into_iter().rev().filter_map(parse).collect()
}
