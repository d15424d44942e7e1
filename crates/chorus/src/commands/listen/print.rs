//! Prints received events, and formats them for the command of `--exec`.

use super::job_event::describe_job_event;
use crate::{cli::CommonArgs, command_client::CommandClient, output};
use chorus_client::event_stream::StreamEvent;
use chorus_wire::cursor::Cursor;
use chorus_wire::envelope::Envelope;
use chorus_wire::message::{HistoryRow, MessageEvent, ReceiptEvent, ShownEvent};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};
use std::io::IsTerminal;

/// A message as one JSON line: kind and cursor, then the keys of the event.
#[derive(Debug, Serialize)]
pub struct ReceivedMessage {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    sender_id: String,
    envelope: Box<RawValue>,
    timestamp: String,
}

impl ReceivedMessage {
    pub fn from_event(cursor: Option<Cursor>, message: &MessageEvent) -> Self {
        Self {
            event: "message",
            id: cursor.map(|cursor| cursor.to_string()),
            trace_id: Some(message.trace_id.to_string()),
            sender_id: message.sender_id.clone(),
            envelope: message.envelope.clone(),
            timestamp: message.timestamp.to_string(),
        }
    }

    pub fn from_row(row: &HistoryRow) -> Self {
        Self {
            event: "message",
            id: Some(row.id.to_string()),
            trace_id: Some(row.trace_id.to_string()),
            sender_id: row.sender_id.clone(),
            envelope: row.envelope.clone(),
            timestamp: row.timestamp.to_string(),
        }
    }

    /// A direct message has neither a cursor nor a trace id.
    pub fn from_direct(sender_id: &str, envelope: Box<RawValue>, timestamp: String) -> Self {
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

    /// Prints a message with its sender (SKL-15), its culture and its cultural context (SKL-14).
    pub fn print_message(&self, common: &CommonArgs, envelope: &Envelope) {
        output::print_result(common.json, self, || {
            let time = output::paint_text(
                output::FAINT_STYLE,
                &crate::local_time::live_time(&self.timestamp),
            );
            let sender = output::paint_text(
                output::STRONG_STYLE,
                &output::escape_controls(envelope.sender_id().as_str()),
            );
            let culture = output::escape_controls(envelope.sender_culture());
            let text = output::escape_controls(envelope.original_text());
            let context = envelope.cultural_context().map(|context| {
                format!(
                    "\n    {}",
                    output::paint_text(
                        output::FAINT_STYLE,
                        &format!("({})", output::escape_controls(context))
                    )
                )
            });
            format!(
                "{time} {sender} ({culture}): {text}{}",
                context.unwrap_or_default()
            )
        });
    }
}

/// Prints the receiver's acknowledgement.
pub fn print_receipt(common: &CommonArgs, cursor: Option<Cursor>, receipt: &ReceiptEvent) {
    let output = json!({ "event": "receipt", "id": cursor.map(|c| c.to_string()), "trace_id": receipt.trace_id,
        "receiver_id": receipt.receiver_id, "response": receipt.response, "timestamp": receipt.timestamp });
    output::print_result(common.json, &output, || {
        let at = receipt.timestamp.to_string();
        let time = output::paint_text(output::FAINT_STYLE, &crate::local_time::live_time(&at));
        let receiver = output::paint_text(
            output::STRONG_STYLE,
            &output::escape_controls(&receipt.receiver_id),
        );
        let response = &receipt.response;
        // a receipt is no answer, and is called what it is.
        let verdict = match (response.error_code.as_deref(), response.detail.as_deref()) {
            (None, _) => output::paint_text(output::GOOD_STYLE, "acknowledged your message"),
            (Some(code), detail) => {
                let why = format!("{code} {}", detail.unwrap_or_default());
                let why = output::escape_controls(why.trim_end());
                output::paint_text(
                    output::BAD_STYLE,
                    &format!("could not take your message: {why}"),
                )
            }
        };
        format!(
            "{time} receipt: {receiver} {verdict}  {}",
            output::paint_text(output::FAINT_STYLE, &receipt.trace_id.to_string())
        )
    });
}

/// Prints that a message was shown to its receiver.
pub fn print_shown(common: &CommonArgs, cursor: Option<Cursor>, shown: &ShownEvent) {
    let output = json!({ "event": "shown", "id": cursor.map(|c| c.to_string()), "trace_id": shown.trace_id,
        "receiver_id": shown.receiver_id, "timestamp": shown.timestamp });
    output::print_result(common.json, &output, || {
        let at = shown.timestamp.to_string();
        format!(
            "{} shown to {}: {}",
            output::paint_text(output::FAINT_STYLE, &crate::local_time::live_time(&at)),
            output::paint_text(
                output::STRONG_STYLE,
                &output::escape_controls(&shown.receiver_id)
            ),
            output::paint_text(output::FAINT_STYLE, &shown.trace_id.to_string())
        )
    });
}

/// Tells that the hub deleted events before this client came for them.
pub fn print_gap(common: &CommonArgs, event: &StreamEvent) {
    let Some(gap) = event.parse_gap() else {
        return print_event(common, event);
    };
    let output = json!({ "event": "gap", "id": event.cursor.map(|c| c.to_string()), "from": gap.from, "to": gap.to });
    output::print_result(common.json, &output, || output::format_gap(gap));
}

/// Prints an event of the market, or of a kind that this client does not know.
pub fn print_event(common: &CommonArgs, event: &StreamEvent) {
    let data: Value = serde_json::from_str(&event.data).unwrap_or_else(|_| json!(event.data));
    let output =
        json!({ "event": event.name, "id": event.cursor.map(|c| c.to_string()), "data": data });
    output::print_result(common.json, &output, || {
        describe_job_event(&event.name, &event.data).unwrap_or_else(|| {
            format!(
                "{}: {}",
                output::escape_controls(&event.name),
                output::escape_controls(&event.data)
            )
        })
    });
}

/// Tells a person at a terminal that the stream is open.
pub fn print_connected(common: &CommonArgs, command: &CommandClient) {
    if !common.json && std::io::stderr().is_terminal() {
        let listening = format!(
            "listening as {} at {}",
            command.credentials.agent_id,
            command.client.base_url()
        );
        anstream::eprintln!(
            "{}",
            output::paint_text(output::FAINT_STYLE, &output::escape_controls(&listening))
        );
    }
}
