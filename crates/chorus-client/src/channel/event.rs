//! What an agent says to a callback, as it travels (CHN-23…28).

use chorus_wire::channel::event::{Event, Identity};
use serde_json::{Map, Value, json};

/// One event, and perhaps who says it (R-76).
#[derive(Clone, Debug)]
pub struct Say {
    pub event: Event,
    pub agent: Option<Identity>,
}

impl Say {
    pub fn message(content: impl Into<String>) -> Self {
        Event::Message {
            content: content.into(),
            parts: None,
        }
        .into()
    }

    pub fn status(status: impl Into<String>) -> Self {
        Event::Status {
            status: status.into(),
        }
        .into()
    }

    pub fn tool_call(
        id: impl Into<String>,
        name: impl Into<String>,
        args: &Map<String, Value>,
    ) -> Self {
        let args = serde_json::value::to_raw_value(args).ok();
        Event::ToolCall {
            id: id.into(),
            name: name.into(),
            args,
        }
        .into()
    }

    pub fn tool_result(id: impl Into<String>, content: impl Into<String>) -> Self {
        Event::ToolResult {
            id: id.into(),
            content: content.into(),
        }
        .into()
    }

    pub fn error(message: impl Into<String>, code: Option<String>) -> Self {
        Event::Error {
            message: message.into(),
            code,
        }
        .into()
    }
}

impl From<Event> for Say {
    fn from(event: Event) -> Self {
        Self { event, agent: None }
    }
}

/// The event as one line of JSON, its keys in the order in which the document prints them.
pub fn print(say: &Say) -> String {
    let mut line = match &say.event {
        Event::Message { content, parts } => {
            let mut line = format!(r#"{{"type":"message","content":{}"#, json!(content));
            if let Some(parts) = parts {
                line.push_str(&format!(r#","parts":{parts}"#));
            }
            line
        }
        Event::ToolCall { id, name, args } => {
            let args = args.as_deref().map_or("{}", |args| args.get());
            format!(
                r#"{{"type":"tool_call","name":{},"args":{args},"id":{}"#,
                json!(name),
                json!(id)
            )
        }
        Event::ToolResult { id, content } => {
            format!(
                r#"{{"type":"tool_result","id":{},"content":{}"#,
                json!(id),
                json!(content)
            )
        }
        Event::Status { status } => format!(r#"{{"type":"status","status":{}"#, json!(status)),
        Event::Error { message, code } => {
            let code = code
                .as_ref()
                .map(|code| format!(r#","code":{}"#, json!(code)))
                .unwrap_or_default();
            format!(r#"{{"type":"error","message":{}{code}"#, json!(message))
        }
    };
    if let Some(agent) = &say.agent {
        line.push_str(&format!(r#","agent":{}"#, json!(agent)));
    }
    line.push('}');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::channel::event::Callback;

    /// CHN-24…28
    #[test]
    fn every_event_is_written_as_the_document_prints_it() {
        let args = json!({"query": "oslo weather"});
        for (say, printed) in [
            (
                Say::message("Hi \"there\"\n"),
                r#"{"type":"message","content":"Hi \"there\"\n"}"#,
            ),
            (
                Say::tool_call("tc_001", "web_search", args.as_object().unwrap()),
                r#"{"type":"tool_call","name":"web_search","args":{"query":"oslo weather"},"id":"tc_001"}"#,
            ),
            (
                Say::tool_result("tc_001", "3°C"),
                r#"{"type":"tool_result","id":"tc_001","content":"3°C"}"#,
            ),
            (
                Say::status("searching"),
                r#"{"type":"status","status":"searching"}"#,
            ),
            (
                Say::error("no", Some("tool_error".into())),
                r#"{"type":"error","message":"no","code":"tool_error"}"#,
            ),
        ] {
            assert_eq!(print(&say), printed);
            Callback::parse(printed.as_bytes()).unwrap();
        }
        let named = Identity {
            name: Some("Timber".into()),
            avatar: None,
            capabilities: Vec::new(),
        };
        let said = print(&Say {
            agent: Some(named),
            ..Say::message("x")
        });
        assert_eq!(
            Callback::parse(said.as_bytes())
                .unwrap()
                .agent
                .unwrap()
                .name
                .as_deref(),
            Some("Timber")
        );
    }
}
