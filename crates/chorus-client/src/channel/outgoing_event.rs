//! The events that an agent posts to a callback, and their JSON form (CHN-23…28).

use chorus_wire::channel::callback_event::{ChannelEvent, ChannelIdentity};
use serde_json::{Map, Value, json};

/// One event, with the identity of its author if it differs from the member (R-76).
#[derive(Clone, Debug)]
pub struct OutgoingEvent {
    pub event: ChannelEvent,
    pub agent: Option<ChannelIdentity>,
}

impl OutgoingEvent {
    pub fn new_message(content: impl Into<String>) -> Self {
        ChannelEvent::Message {
            content: content.into(),
            parts: None,
        }
        .into()
    }

    pub fn new_status(status: impl Into<String>) -> Self {
        ChannelEvent::Status {
            status: status.into(),
        }
        .into()
    }

    pub fn new_tool_call(
        id: impl Into<String>,
        name: impl Into<String>,
        args: &Map<String, Value>,
    ) -> Self {
        let args = serde_json::value::to_raw_value(args).ok();
        ChannelEvent::ToolCall {
            id: id.into(),
            name: name.into(),
            args,
        }
        .into()
    }

    pub fn new_tool_result(id: impl Into<String>, content: impl Into<String>) -> Self {
        ChannelEvent::ToolResult {
            id: id.into(),
            content: content.into(),
        }
        .into()
    }

    pub fn new_error(message: impl Into<String>, code: Option<String>) -> Self {
        ChannelEvent::Error {
            message: message.into(),
            code,
        }
        .into()
    }
}

impl From<ChannelEvent> for OutgoingEvent {
    fn from(event: ChannelEvent) -> Self {
        Self { event, agent: None }
    }
}

/// The event as one line of JSON, with the keys in the order of the specification.
pub fn print_event(outgoing: &OutgoingEvent) -> String {
    let mut line = match &outgoing.event {
        ChannelEvent::Message { content, parts } => {
            let mut line = format!(r#"{{"type":"message","content":{}"#, json!(content));
            if let Some(parts) = parts {
                line.push_str(&format!(r#","parts":{parts}"#));
            }
            line
        }
        ChannelEvent::ToolCall { id, name, args } => {
            let args = args.as_deref().map_or("{}", |args| args.get());
            format!(
                r#"{{"type":"tool_call","name":{},"args":{args},"id":{}"#,
                json!(name),
                json!(id)
            )
        }
        ChannelEvent::ToolResult { id, content } => {
            format!(
                r#"{{"type":"tool_result","id":{},"content":{}"#,
                json!(id),
                json!(content)
            )
        }
        ChannelEvent::Status { status } => {
            format!(r#"{{"type":"status","status":{}"#, json!(status))
        }
        ChannelEvent::Error { message, code } => {
            let code = code
                .as_ref()
                .map(|code| format!(r#","code":{}"#, json!(code)))
                .unwrap_or_default();
            format!(r#"{{"type":"error","message":{}{code}"#, json!(message))
        }
    };
    if let Some(agent) = &outgoing.agent {
        line.push_str(&format!(r#","agent":{}"#, json!(agent)));
    }
    line.push('}');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::channel::callback_event::CallbackPost;

    /// CHN-24…28
    #[test]
    fn every_event_has_the_json_of_the_specification() {
        let args = json!({"query": "oslo weather"});
        for (outgoing, printed) in [
            (
                OutgoingEvent::new_message("Hi \"there\"\n"),
                r#"{"type":"message","content":"Hi \"there\"\n"}"#,
            ),
            (
                OutgoingEvent::new_tool_call("tc_001", "web_search", args.as_object().unwrap()),
                r#"{"type":"tool_call","name":"web_search","args":{"query":"oslo weather"},"id":"tc_001"}"#,
            ),
            (
                OutgoingEvent::new_tool_result("tc_001", "3°C"),
                r#"{"type":"tool_result","id":"tc_001","content":"3°C"}"#,
            ),
            (
                OutgoingEvent::new_status("searching"),
                r#"{"type":"status","status":"searching"}"#,
            ),
            (
                OutgoingEvent::new_error("no", Some("tool_error".into())),
                r#"{"type":"error","message":"no","code":"tool_error"}"#,
            ),
        ] {
            assert_eq!(print_event(&outgoing), printed);
            CallbackPost::parse(printed.as_bytes()).unwrap();
        }
        let identity = ChannelIdentity {
            name: Some("Timber".into()),
            avatar: None,
            capabilities: None,
        };
        let line = print_event(&OutgoingEvent {
            agent: Some(identity),
            ..OutgoingEvent::new_message("x")
        });
        assert_eq!(
            CallbackPost::parse(line.as_bytes())
                .unwrap()
                .agent
                .unwrap()
                .name
                .as_deref(),
            Some("Timber")
        );
    }
}
