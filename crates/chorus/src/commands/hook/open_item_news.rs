//! What is open, for a model's context: claims of other sessions, decisions, and work that was handed over.

use super::super::duration;
use super::super::frame::frame_context::{self, FrameContext};
use super::news::{strip_styles, truncate_text};
use chorus_client::frame::{ParsedOpenItem, frame_session};
use chorus_wire::frame::{Frame, FramePayload};
use chorus_wire::time::UnixMicros;
use std::time::Duration;
use uuid::Uuid;

/// An open item as it is reported.
pub struct ItemNote {
    pub frame_id: Uuid,
    pub text: String,
}

/// The items that this session did not open itself, and that were opened after `told_at`, oldest first.
pub fn select_items(
    context: &FrameContext<'_>,
    items: &[ParsedOpenItem],
    told_at: Option<UnixMicros>,
) -> Vec<ItemNote> {
    let is_news = |open_item: &&ParsedOpenItem| {
        !context.sender.is_sender_of(&open_item.frame)
            && told_at.is_none_or(|told_at| open_item.item.opened_at > told_at)
    };
    let to_note = |open_item: &ParsedOpenItem| {
        Some(ItemNote {
            frame_id: open_item.frame.frame_id,
            text: strip_styles(&format_item(open_item)?),
        })
    };
    items.iter().filter(is_news).filter_map(to_note).collect()
}

fn format_item(open_item: &ParsedOpenItem) -> Option<String> {
    let frame = &open_item.frame;
    let id = frame.frame_id;
    let from = format_origin(frame);
    let left = duration::format_duration(time_left(open_item));
    if let FramePayload::AgentLockRequest(claim) = &frame.payload {
        let intent = claim.intent.as_deref().filter(|intent| !intent.is_empty());
        let intent = intent.map(|intent| format!(": {}", truncate_text(intent)));
        return Some(format!(
            "{} is claimed by {from} for another {left}{}",
            claim.resource,
            intent.unwrap_or_default()
        ));
    }
    if let FramePayload::AgentHandover(work) = &frame.payload {
        let refs = work.pointer_refs.as_deref().unwrap_or_default().join(", ");
        let refs = match refs.is_empty() {
            true => String::new(),
            false => format!(" [{}]", truncate_text(&refs)),
        };
        return Some(format!(
            "work handed over by {from}: {}{refs} (if you continue it: chorus handover --take {id})",
            truncate_text(work.handover_body.trim_end())
        ));
    }
    if let FramePayload::AgentBindingMoment(moment) = &frame.payload {
        return Some(format!(
            "a decision that {from} waits for, for another {left}: {} (for your user, who answers with: chorus decide {id})",
            truncate_text(&moment.question.stem)
        ));
    }
    None
}

fn format_origin(frame: &Frame) -> String {
    match frame_session(frame) {
        Some((instrument, session)) => format!("{} {instrument}@{session}", frame.sender_handle),
        None => frame.sender_handle.to_string(),
    }
}

fn time_left(open_item: &ParsedOpenItem) -> Duration {
    let micros = open_item.expires_at.0 - frame_context::current_time().0;
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
