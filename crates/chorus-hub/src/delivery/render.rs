//! Log entries as the events of streams: the same bytes live and replayed, framed as HTTP chunks (R-100).

use super::sealed_delivery::unseal_credentials;
use crate::seal::SealKey;
use crate::store::log::compute_trace_id;
use crate::store::{DeliveryState, EntryKind, LogEntry, LogSeq};
use bytes::Bytes;
use chorus_wire::event_chunk::{format_event_chunk, format_written_chunk};
use chorus_wire::{cursor::Cursor, message::GapEvent, reply::ActivityRow};
use serde_json::{Value, json};

/// The octets of a message's event beside the envelope and the sender's name: field names, trace id and time.
const MESSAGE_EVENT_BYTES: usize = 128;

/// The event on a subject's stream.
pub(crate) fn render_event(entry: &LogEntry, salt: u32, seal_key: &SealKey) -> Bytes {
    let id = Some(Cursor::from_log_seq(entry.seq.to_u64()));
    match entry.kind {
        EntryKind::Message => {
            // The body is the envelope's JSON and names need no escaping, so the data is concatenated, not serialised again.
            let at = entry.at;
            let trace = compute_trace_id(entry.seq, at, salt);
            let sender = &entry.actor_name;
            let body = &entry.body;
            let data_bytes = body.len() + sender.len() + MESSAGE_EVENT_BYTES;
            let data = format_args!(
                r#"{{"trace_id":"{trace}","sender_id":"{sender}","envelope":{body},"timestamp":"{at}"}}"#
            );
            format_written_chunk("message", id, data_bytes, data)
        }
        EntryKind::Receipt | EntryKind::Shown => {
            let open = entry.body.strip_suffix('}').unwrap_or(&entry.body);
            format_event_chunk(
                entry.kind.as_str(),
                id,
                &format!(r#"{open},"timestamp":"{}"}}"#, entry.at),
            )
        }
        // R-78: the body as the service delivered it.
        EntryKind::Channel => {
            let body = unseal_credentials(seal_key, &entry.body);
            format_event_chunk(entry.kind.as_str(), id, &body)
        }
        EntryKind::ChannelInvite
        | EntryKind::Job
        | EntryKind::JobResult
        | EntryKind::JobUpdate
        | EntryKind::Activity
        | EntryKind::CacheInvalidation => format_event_chunk(entry.kind.as_str(), id, &entry.body),
        EntryKind::ChannelMessage => format_event_chunk("message", id, &render_line(entry)),
        EntryKind::ToolCall
        | EntryKind::ToolResult
        | EntryKind::Status
        | EntryKind::ChannelError
        | EntryKind::MemberChange
        | EntryKind::ArtifactChange
        | EntryKind::FilePut => format_event_chunk(entry.kind.as_str(), id, &render_line(entry)),
    }
}

/// A row of a channel's history: the stored body, with its sequence and time, which were not known when it was written.
pub(crate) fn render_line(entry: &LogEntry) -> String {
    let open = entry.body.strip_suffix('}').unwrap_or(&entry.body);
    format!(
        r#"{open},"cursor":{},"timestamp":"{}"}}"#,
        entry.seq, entry.at
    )
}

/// Activity ids of one entry: the first is for the request, the next for its outcome.
const ACTIVITY_IDS_PER_ENTRY: u64 = 4;

/// The log sequence up to which a reader of activity has read.
pub(crate) fn seq_of_activity(activity_id: u64) -> LogSeq {
    LogSeq::from_client(activity_id / ACTIVITY_IDS_PER_ENTRY)
}

/// The last activity id that the entry of this sequence can have: the cursor of a reader that has all of it.
pub(crate) fn last_activity_id(seq: LogSeq) -> u64 {
    seq.to_u64() * ACTIVITY_IDS_PER_ENTRY + (ACTIVITY_IDS_PER_ENTRY - 1)
}

/// Tells a reader that events after the id `from`, up to the id `to`, have been deleted. A stream that breaks after it resumes
/// from `to`.
pub(crate) fn render_gap(from: u64, to: u64) -> Bytes {
    let data = serde_json::to_string(&GapEvent { from, to }).unwrap_or_default();
    format_event_chunk("gap", Some(Cursor::from_log_seq(to)), &data)
}

/// The activity rows of an entry (lesson 10). A message is two rows, without its text.
pub(crate) fn activity_rows(entry: &LogEntry, salt: u32) -> Vec<ActivityRow> {
    let row = |part: u64, kind: &str, data: Value| ActivityRow {
        id: entry.seq.to_u64() * ACTIVITY_IDS_PER_ENTRY + part,
        kind: kind.to_owned(),
        timestamp: entry.at,
        data,
    };
    match entry.kind {
        EntryKind::Message => {
            let trace_id = compute_trace_id(entry.seq, entry.at, salt);
            let data = json!({"trace_id": trace_id, "sender_id": &*entry.actor_name, "receiver_id": &*entry.subject_name});
            let outcome = match entry.delivery {
                Some(DeliveryState::Sse) => "message_delivered_sse",
                Some(DeliveryState::Queued) => "message_queued",
                // The outcome of the webhook is an entry of its own.
                Some(DeliveryState::Pending | DeliveryState::Webhook | DeliveryState::Failed)
                | None => "message_forward_started",
            };
            vec![
                row(0, "message_submitted", data.clone()),
                row(1, outcome, data),
            ]
        }
        EntryKind::Activity => match serde_json::from_str::<Value>(&entry.body) {
            Ok(body) => vec![row(
                0,
                body["type"].as_str().unwrap_or_default(),
                body["data"].clone(),
            )],
            Err(_) => Vec::new(),
        },
        // Jobs are private to their parties, channels to their members.
        EntryKind::Receipt
        | EntryKind::Shown
        | EntryKind::Channel
        | EntryKind::ChannelInvite
        | EntryKind::Job
        | EntryKind::JobResult
        | EntryKind::JobUpdate
        | EntryKind::CacheInvalidation => Vec::new(),
        EntryKind::ChannelMessage
        | EntryKind::ToolCall
        | EntryKind::ToolResult
        | EntryKind::Status
        | EntryKind::ChannelError
        | EntryKind::MemberChange
        | EntryKind::ArtifactChange
        | EntryKind::FilePut => Vec::new(),
    }
}

/// The activity rows after an id, as events for `/events`; `None` when there are none.
pub(crate) fn render_activity_events(entry: &LogEntry, salt: u32, after_id: u64) -> Option<Bytes> {
    let events = activity_rows(entry, salt)
        .into_iter()
        .filter(|row| row.id > after_id)
        .map(|row| {
            let data = serde_json::to_string(&row).unwrap_or_default();
            format_event_chunk("activity", Some(Cursor::from_log_seq(row.id)), &data)
        });
    let events: Vec<u8> = events.flatten().collect();
    if events.is_empty() {
        None
    } else {
        Some(events.into())
    }
}
