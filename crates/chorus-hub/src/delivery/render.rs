//! An entry of the log as the event that its hearers get: the same bytes live and replayed.

use crate::store::log::trace_id;
use crate::store::{Entry, Kind, Mark};
use bytes::Bytes;
use chorus_wire::{cursor::Cursor, reply::Activity, sse};
use serde_json::{Value, json};

/// The event on a subject's stream.
pub(crate) fn event(entry: &Entry, salt: u32) -> Bytes {
    let id = Some(Cursor::log(entry.seq as u64));
    match entry.kind {
        Kind::Message => {
            // The body is the envelope's JSON and names need no escaping, so the data is put together, not serialised again.
            let (trace, sender, at) = (
                trace_id(entry.seq, entry.at, salt),
                &entry.actor_name,
                entry.at,
            );
            let body = &entry.body;
            let data = format!(
                r#"{{"trace_id":"{trace}","sender_id":"{sender}","envelope":{body},"timestamp":"{at}"}}"#
            );
            sse::event("message", id, &data)
        }
        Kind::Receipt => {
            let open = entry.body.strip_suffix('}').unwrap_or(&entry.body);
            sse::event(
                "receipt",
                id,
                &format!(r#"{open},"timestamp":"{}"}}"#, entry.at),
            )
        }
        // R-78: what a service delivered, and nothing around it.
        Kind::Channel | Kind::Job | Kind::JobResult => {
            sse::event(entry.kind.as_str(), id, &entry.body)
        }
        Kind::Activity | Kind::Notice => sse::event(entry.kind.as_str(), id, &entry.body),
        Kind::Said => sse::event("message", id, &line(entry)),
        Kind::ToolCall | Kind::ToolResult | Kind::Status | Kind::Fault | Kind::Member => {
            sse::event(entry.kind.as_str(), id, &line(entry))
        }
    }
}

/// A line of a room's history: what was kept, and its place and time, which were not known when it was written.
pub(crate) fn line(entry: &Entry) -> String {
    let open = entry.body.strip_suffix('}').unwrap_or(&entry.body);
    format!(
        r#"{open},"cursor":{},"timestamp":"{}"}}"#,
        entry.seq, entry.at
    )
}

/// Activity ids of one entry: what was asked, then what came of it.
const PER_ENTRY: u64 = 4;

/// The place in the log up to which a reader of activity has read.
pub(crate) fn place_of(activity_id: u64) -> i64 {
    (activity_id / PER_ENTRY) as i64
}

/// What operators hear of an entry (lesson 10). A message is two facts; its text is nobody's business here.
pub(crate) fn activity(entry: &Entry, salt: u32) -> Vec<Activity> {
    let row = |part: u64, kind: &str, data: Value| Activity {
        id: entry.seq as u64 * PER_ENTRY + part,
        kind: kind.to_owned(),
        timestamp: entry.at,
        data,
    };
    match entry.kind {
        Kind::Message => {
            let trace_id = trace_id(entry.seq, entry.at, salt);
            let data = json!({"trace_id": trace_id, "sender_id": &*entry.actor_name, "receiver_id": &*entry.subject_name});
            let outcome = match entry.via {
                Some(Mark::Sse) => "message_delivered_sse",
                Some(Mark::Queued) => "message_queued",
                // What came of the webhook is an entry of its own.
                Some(Mark::Pending | Mark::Webhook | Mark::Failed) | None => {
                    "message_forward_started"
                }
            };
            vec![
                row(0, "message_submitted", data.clone()),
                row(1, outcome, data),
            ]
        }
        Kind::Activity => match serde_json::from_str::<Value>(&entry.body) {
            Ok(body) => vec![row(
                0,
                body["type"].as_str().unwrap_or_default(),
                body["data"].clone(),
            )],
            Err(_) => Vec::new(),
        },
        // A job is its parties' business, and what is said in a channel its members'.
        Kind::Receipt | Kind::Channel | Kind::Job | Kind::JobResult | Kind::Notice => Vec::new(),
        Kind::Said
        | Kind::ToolCall
        | Kind::ToolResult
        | Kind::Status
        | Kind::Fault
        | Kind::Member => Vec::new(),
    }
}

/// The same as events for `/events`, those after an id; `None` when operators do not hear of it.
pub(crate) fn activity_event(entry: &Entry, salt: u32, after: u64) -> Option<Bytes> {
    let events = activity(entry, salt)
        .into_iter()
        .filter(|row| row.id > after)
        .map(|row| {
            let data = serde_json::to_string(&row).unwrap_or_default();
            sse::event("activity", Some(Cursor::log(row.id)), &data)
        });
    let events: Vec<u8> = events.flatten().collect();
    if events.is_empty() {
        None
    } else {
        Some(events.into())
    }
}
