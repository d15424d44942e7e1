//! Deliveries from channels: shown, kept so that they can be answered, and handed to the command.

use super::{Listener, exec};
use crate::{cli::Common, fail::Fail, out};
use chorus_client::channel::{Delivered, Kept};
use chorus_client::stream::Event;
use chorus_wire::cursor::Cursor;
use serde::Serialize;
use serde_json::value::RawValue;

/// A delivery as one JSON line: the body as the service wrote it, under one key.
#[derive(Debug, Serialize)]
struct Told<'a> {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    delivery: &'a RawValue,
}

impl Listener<'_> {
    pub(super) async fn delivery(&mut self, event: &Event) -> Result<(), Fail> {
        let delivered = match Delivered::of(event) {
            Ok(Some(delivered)) => delivered,
            Ok(None) => return Ok(()),
            Err(e) => {
                tracing::warn!("a delivery was not understood: {e}");
                return self.reached(event.cursor, None);
            }
        };
        // First the way back: whoever sees the message can answer it.
        Kept::keep(&self.session.place, &delivered.delivery)?;
        let line = told(event.cursor, &delivered);
        show(self.common, &line, &delivered);
        self.left -= 1;
        self.reached(event.cursor, None)?;
        exec::deliver(self.args, &line).await;
        Ok(())
    }
}

fn told(cursor: Option<Cursor>, delivered: &Delivered) -> String {
    let body: &RawValue = serde_json::from_str(&delivered.body).unwrap_or(RawValue::NULL);
    let told = Told {
        event: "channel",
        id: cursor.map(|cursor| cursor.to_string()),
        delivery: body,
    };
    serde_json::to_string(&told).unwrap_or_default()
}

fn show(common: &Common, line: &str, delivered: &Delivered) {
    if common.json {
        return out::line(line);
    }
    let (channel, message) = (&delivered.delivery.channel, &delivered.delivery.message);
    let place = out::harmless(channel.name.as_deref().unwrap_or(&channel.id));
    let sender = out::painted(out::STRONG, &out::harmless(&message.sender));
    out::line(&format!(
        "{} {sender}: {}",
        out::painted(out::FAINT, &format!("#{place}")),
        out::harmless(&message.content)
    ));
}
