//! `chorus listen`: prints channel deliveries, saves their callbacks and passes them to the command.

use super::{InboxListener, handler_command};
use crate::{cli::CommonArgs, fail::Fail, output};
use chorus_client::channel::{ReceivedDelivery, SavedCallback};
use chorus_client::event_stream::StreamEvent;
use chorus_wire::cursor::Cursor;
use serde::Serialize;
use serde_json::value::RawValue;

/// A delivery as one JSON line, with the service's body unchanged under one key.
#[derive(Debug, Serialize)]
struct DeliveryLine<'a> {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    delivery: &'a RawValue,
}

impl InboxListener<'_> {
    pub(super) async fn handle_delivery(&mut self, event: &StreamEvent) -> Result<(), Fail> {
        let received = match ReceivedDelivery::from_event(event) {
            Ok(Some(received)) => received,
            Ok(None) => return Ok(()),
            Err(e) => {
                tracing::warn!("a delivery was not understood: {e}");
                return self.save_progress(event.cursor, None);
            }
        };
        // Save the callback before printing, so that a message on the screen can be answered.
        SavedCallback::save_callback(&self.session.files, &received.delivery)?;
        let line = delivery_line(event.cursor, &received);
        print_delivery(self.common, &line, &received);
        self.remaining -= 1;
        self.save_progress(event.cursor, None)?;
        handler_command::pass_delivery(self.args, &line).await;
        Ok(())
    }
}

fn delivery_line(cursor: Option<Cursor>, received: &ReceivedDelivery) -> String {
    let body: &RawValue = serde_json::from_str(&received.body).unwrap_or(RawValue::NULL);
    let line = DeliveryLine {
        event: "channel",
        id: cursor.map(|cursor| cursor.to_string()),
        delivery: body,
    };
    serde_json::to_string(&line).unwrap_or_default()
}

fn print_delivery(common: &CommonArgs, line: &str, received: &ReceivedDelivery) {
    if common.json {
        return output::print_line(line);
    }
    let channel = &received.delivery.channel;
    let message = &received.delivery.message;
    let channel_name = output::escape_controls(channel.name.as_deref().unwrap_or(&channel.id));
    let sender = output::paint_text(
        output::STRONG_STYLE,
        &output::escape_controls(&message.sender),
    );
    output::print_line(&format!(
        "{} {sender}: {}",
        output::paint_text(output::FAINT_STYLE, &format!("#{channel_name}")),
        output::escape_controls(&message.content)
    ));
}
