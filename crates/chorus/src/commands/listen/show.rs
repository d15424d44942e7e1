//! What a listener prints, and what it hands to a command.

use crate::{cli::Common, out, session::Session};
use chorus_client::stream::Event;
use chorus_wire::cursor::Cursor;
use chorus_wire::envelope::Envelope;
use chorus_wire::message::{MessageEvent, Receipt};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use std::io::IsTerminal;

/// A message as one JSON line: the event's own keys, with its kind and its cursor before them.
#[derive(Debug, Serialize)]
pub struct Message {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    sender_id: String,
    envelope: Box<RawValue>,
    timestamp: String,
}

impl Message {
    pub fn of(cursor: Option<Cursor>, message: &MessageEvent) -> Self {
        Self {
            event: "message",
            id: cursor.map(|cursor| cursor.to_string()),
            trace_id: Some(message.trace_id.to_string()),
            sender_id: message.sender_id.clone(),
            envelope: message.envelope.clone(),
            timestamp: message.timestamp.to_string(),
        }
    }

    /// One that came without a hub has neither cursor nor trace.
    pub fn direct(sender_id: &str, envelope: Box<RawValue>, timestamp: String) -> Self {
        Self {
            event: "message",
            id: None,
            trace_id: None,
            sender_id: sender_id.to_owned(),
            envelope,
            timestamp,
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// SKL-15: always with its sender; SKL-14: with the culture it was said in, and why, if that was given.
    pub fn show(&self, common: &Common, envelope: &Envelope) {
        out::say(common.json, self, || {
            let time = out::painted(out::FAINT, out::clock(&self.timestamp));
            let sender = out::painted(out::STRONG, &out::harmless(envelope.sender_id().as_str()));
            let culture = out::harmless(envelope.sender_culture());
            let text = out::harmless(envelope.original_text());
            let context = envelope.cultural_context().map(|context| {
                format!(
                    "\n    {}",
                    out::painted(out::FAINT, &format!("({})", out::harmless(context)))
                )
            });
            format!(
                "{time} {sender} ({culture}): {text}{}",
                context.unwrap_or_default()
            )
        });
    }
}

/// the other agent saw it.
pub fn receipt(common: &Common, cursor: Option<Cursor>, receipt: &Receipt) {
    let said = json!({ "event": "receipt", "id": cursor.map(|c| c.to_string()), "trace_id": receipt.trace_id,
        "receiver_id": receipt.receiver_id, "response": receipt.response, "timestamp": receipt.timestamp });
    out::say(common.json, &said, || {
        let at = receipt.timestamp.to_string();
        let time = out::painted(out::FAINT, out::clock(&at));
        let receiver = out::painted(out::STRONG, &out::harmless(&receipt.receiver_id));
        let response = &receipt.response;
        let verdict = match (response.error_code.as_deref(), response.detail.as_deref()) {
            (None, _) => out::painted(out::GOOD, &out::harmless(&response.status)),
            (Some(code), detail) => out::painted(
                out::BAD,
                &out::harmless(&format!("{code} {}", detail.unwrap_or_default())),
            ),
        };
        format!(
            "{time} {receiver} answered {}: {verdict}",
            out::painted(out::FAINT, &receipt.trace_id.to_string())
        )
    });
}

/// An event of a kind that this client does not know.
pub fn other(common: &Common, event: &Event) {
    let data: Value = serde_json::from_str(&event.data).unwrap_or_else(|_| json!(event.data));
    let said =
        json!({ "event": event.name, "id": event.cursor.map(|c| c.to_string()), "data": data });
    out::say(common.json, &said, || {
        format!(
            "{}: {}",
            out::harmless(&event.name),
            out::harmless(&event.data)
        )
    });
}

/// For a person who waits: that it is now worth waiting.
pub fn connected(common: &Common, session: &Session) {
    if !common.json && std::io::stderr().is_terminal() {
        let listening = format!(
            "listening as {} at {}",
            session.who.agent_id,
            session.client.base()
        );
        anstream::eprintln!("{}", out::painted(out::FAINT, &out::harmless(&listening)));
    }
}
