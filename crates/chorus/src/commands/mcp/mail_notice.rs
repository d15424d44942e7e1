//! Adds one line about unread mail to a tool's result.

use super::hub_link::HubLink;
use crate::output;
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The notice's key in a structured result.
const NOTICE_FIELD: &str = "chorus_notice";

/// Max messages counted in one notice: one page of history, so that a notice costs one request. Beyond it the notice says
/// that there are more.
const MAX_COUNTED: usize = 20;
/// Max senders named in one notice: it is added to the result of another tool and has to stay one line.
const MAX_NAMED: usize = 3;

/// The notice, or `None` without unread mail. The hub is asked only if there may be mail, because another session or a
/// hook may have read it meanwhile.
pub async fn mail_notice(hub_link: &HubLink) -> Option<String> {
    if hub_link.is_listening.load(Ordering::Acquire)
        && !hub_link.may_have_mail.swap(false, Ordering::AcqRel)
    {
        return None;
    }
    let Ok(inbox) = hub_link.peek_unread(MAX_COUNTED).await else {
        hub_link.may_have_mail.store(true, Ordering::Release);
        return None;
    };
    let mut inbox = inbox.structured_content?;
    if !event_ids(&inbox).is_empty() {
        inbox = leave_out_told(hub_link, inbox).await?;
    }
    let notice = format_notice(&inbox)?;
    // The mail stays unread until it is acknowledged.
    hub_link.may_have_mail.store(true, Ordering::Release);
    Some(notice)
}

/// Leaves out the messages whose text a wake has shown, and saves that the others are named (D-115).
async fn leave_out_told(hub_link: &HubLink, mut inbox: Value) -> Option<Value> {
    hub_link
        .with_progress(move |mut progress| {
            if let Some(events) = inbox["events"].as_array_mut() {
                events.retain(|event| {
                    event["data"]["trace_id"]
                        .as_str()
                        .is_none_or(|trace_id| !progress.is_acknowledged(trace_id))
                });
            }
            if let Err(error) = progress.save_named(event_ids(&inbox)) {
                tracing::warn!("a wake may tell of named messages again: {error}");
            }
            inbox
        })
        .await
}

/// The trace ids of the messages in the data of `chorus_inbox` or `chorus_history`.
pub fn event_ids(data: &Value) -> Vec<String> {
    let events = data["events"].as_array().into_iter().flatten();
    let rows = data["messages"].as_array().into_iter().flatten();
    events
        .map(|event| &event["data"]["trace_id"])
        .chain(rows.map(|row| &row["trace_id"]))
        .chain([&data["answer"]["trace_id"]])
        .filter_map(|trace_id| trace_id.as_str().map(str::to_owned))
        .collect()
}

/// Adds the notice to the text and to the data of a result: some hosts show their model only one of them.
pub fn add_notice(result: &mut CallToolResult, line: String) {
    if let Some(Value::Object(data)) = &mut result.structured_content {
        data.insert(NOTICE_FIELD.into(), json!(line));
    }
    result.content.push(ContentBlock::text(line));
}

/// Adds the notice to a tool's output schema.
pub fn add_notice_field(tool: &mut Tool) {
    let Some(schema) = &mut tool.output_schema else {
        return;
    };
    let notice_schema = json!({ "type": "string", "description": "Unread mail, if there is any; see chorus_inbox" });
    let fields = Arc::make_mut(schema)
        .entry("properties")
        .or_insert_with(|| json!({}));
    if let Value::Object(fields) = fields {
        fields.insert(NOTICE_FIELD.into(), notice_schema);
    }
}

fn format_notice(inbox: &Value) -> Option<String> {
    let events = inbox["events"].as_array()?;
    let mut senders: Vec<String> = Vec::new();
    for event in events {
        let sender = event["data"]["sender_id"]
            .as_str()
            .map(output::escape_controls);
        senders.extend(sender.filter(|sender| !senders.contains(sender)));
    }
    let count = match (events.len(), inbox["more"].as_bool()) {
        (0, _) => return None,
        (count, Some(true)) => format!("more than {count} unread messages"),
        (1, _) => "1 unread message".to_owned(),
        (count, _) => format!("{count} unread messages"),
    };
    let others = if senders.len() > MAX_NAMED {
        " and others"
    } else {
        ""
    };
    senders.truncate(MAX_NAMED);
    Some(format!(
        "Chorus: {count} from {}{others}. See chorus_inbox.",
        senders.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox(senders: &[&str], more: bool) -> Value {
        let event =
            |sender: &&str| json!({ "id": 1, "event": "message", "data": { "sender_id": sender } });
        json!({ "events": senders.iter().map(event).collect::<Vec<_>>(), "more": more })
    }

    #[test]
    fn the_notice_names_the_senders_in_one_line() {
        assert_eq!(format_notice(&inbox(&[], false)), None);
        let single = format_notice(&inbox(&["bob@chorus"], false)).unwrap();
        assert_eq!(
            single,
            "Chorus: 1 unread message from bob@chorus. See chorus_inbox."
        );
        let several = format_notice(&inbox(&["a@x", "b@x", "a@x", "c@x", "d@x"], true)).unwrap();
        assert_eq!(
            several,
            "Chorus: more than 5 unread messages from a@x, b@x, c@x and others. See chorus_inbox."
        );
    }
}
