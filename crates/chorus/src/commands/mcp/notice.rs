//! One line about unread mail, for the end of a tool's result.

use super::link::Link;
use crate::out;
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Where the line stands in a structured result.
const FIELD: &str = "chorus_notice";

/// Messages that are counted, and senders that are named, in one line.
const COUNTED: usize = 20;
const NAMED: usize = 3;

/// None when there is nothing. The hub is asked only when something may be there: another session, or a hook, may have read
/// it meanwhile.
pub async fn line(link: &Link) -> Option<String> {
    if link.hears.load(Ordering::Acquire) && !link.mail.swap(false, Ordering::AcqRel) {
        return None;
    }
    let Ok(inbox) = link.call("chorus_inbox", json!({ "limit": COUNTED })).await else {
        link.mail.store(true, Ordering::Release);
        return None;
    };
    let said = worded(&inbox.structured_content?)?;
    // It waits until it is acknowledged.
    link.mail.store(true, Ordering::Release);
    Some(said)
}

/// At the end of the result, and inside its data: some hosts show their model the one, some the other.
pub fn put(result: &mut CallToolResult, line: String) {
    if let Some(Value::Object(data)) = &mut result.structured_content {
        data.insert(FIELD.into(), json!(line));
    }
    result.content.push(ContentBlock::text(line));
}

/// What a tool returns may have the line in it, so its schema says so.
pub fn announce(tool: &mut Tool) {
    let Some(schema) = &mut tool.output_schema else {
        return;
    };
    let about = json!({ "type": "string", "description": "Unread mail, if there is any; see chorus_inbox" });
    let fields = Arc::make_mut(schema)
        .entry("properties")
        .or_insert_with(|| json!({}));
    if let Value::Object(fields) = fields {
        fields.insert(FIELD.into(), about);
    }
}

fn worded(inbox: &Value) -> Option<String> {
    let events = inbox["events"].as_array()?;
    let mut senders: Vec<String> = Vec::new();
    for event in events {
        let sender = event["data"]["sender_id"].as_str().map(out::harmless);
        senders.extend(sender.filter(|sender| !senders.contains(sender)));
    }
    let count = match (events.len(), inbox["more"].as_bool()) {
        (0, _) => return None,
        (count, Some(true)) => format!("more than {count} unread messages"),
        (1, _) => "1 unread message".to_owned(),
        (count, _) => format!("{count} unread messages"),
    };
    let others = if senders.len() > NAMED {
        " and others"
    } else {
        ""
    };
    senders.truncate(NAMED);
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
    fn the_line_names_who_wrote_and_is_one_line() {
        assert_eq!(worded(&inbox(&[], false)), None);
        let one = worded(&inbox(&["bob@chorus"], false)).unwrap();
        assert_eq!(
            one,
            "Chorus: 1 unread message from bob@chorus. See chorus_inbox."
        );
        let many = worded(&inbox(&["a@x", "b@x", "a@x", "c@x", "d@x"], true)).unwrap();
        assert_eq!(
            many,
            "Chorus: more than 5 unread messages from a@x, b@x, c@x and others. See chorus_inbox."
        );
    }
}
