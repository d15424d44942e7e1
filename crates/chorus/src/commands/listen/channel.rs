//! `chorus listen`: prints channel deliveries, saves their callbacks and passes them to the command.

use super::{InboxListener, handler_command};
use crate::{cli::CommonArgs, fail::Fail, output};
use chorus_client::channel::{
    DeliveryTrust, ReceivedDelivery, SavedCallback, SigningSecret, callback_origin,
};
use chorus_client::event_stream::StreamEvent;
use chorus_wire::channel::invitation::ChannelInvite;
use chorus_wire::cursor::Cursor;
use serde::Serialize;
use serde_json::value::RawValue;

/// A delivery as one JSON line, with the service's body unchanged under one key.
#[derive(Debug, Serialize)]
struct DeliveryLine<'a> {
    event: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Where an answer goes, which the sender of the delivery chose.
    origin: String,
    /// The service has signed it with the secret that this agent keeps (CHN-34).
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<bool>,
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
        let trust = received.check_signature(&SigningSecret::read_all(&self.command.files)?);
        if trust == DeliveryTrust::Forged {
            let origin = delivery_origin(&received);
            tracing::warn!("a delivery in the name of {origin} is refused: it did not sign it");
            return self.save_progress(event.cursor, None);
        }
        // Save the callback before printing, so that a message on the screen can be answered.
        SavedCallback::save_callback(&self.command.files, &received.delivery)?;
        let line = delivery_line(event.cursor, &received, trust);
        self.print_delivery(&line, &received);
        self.remaining -= 1;
        self.save_progress(event.cursor, None)?;
        handler_command::pass_delivery(self.args, &line).await;
        Ok(())
    }

    /// Prints a delivery; one of another service than the hub is marked with its origin.
    fn print_delivery(&self, line: &str, received: &ReceivedDelivery) {
        if self.common.json {
            return output::print_json(line);
        }
        let channel = &received.delivery.channel;
        let message = &received.delivery.message;
        let name = output::escape_controls(channel.name.as_deref().unwrap_or(&channel.id));
        let sender = output::escape_controls(&message.sender);
        let sender = output::paint_text(output::STRONG_STYLE, &sender);
        let origin = delivery_origin(received);
        let hub_url = self.command.client.base_url();
        let is_own = hub_url == origin || hub_url.starts_with(&format!("{origin}/"));
        let place = match is_own {
            true => format!("#{name}"),
            false => format!("#{name} at {}", output::escape_controls(&origin)),
        };
        output::print_line(&format!(
            "{} {sender}: {}",
            output::paint_text(output::FAINT_STYLE, &place),
            output::escape_controls(&message.content)
        ));
    }
}

fn delivery_line(
    cursor: Option<Cursor>,
    received: &ReceivedDelivery,
    trust: DeliveryTrust,
) -> String {
    let body: &RawValue = serde_json::from_str(&received.body).unwrap_or(RawValue::NULL);
    let line = DeliveryLine {
        event: "channel",
        id: cursor.map(|cursor| cursor.to_string()),
        origin: delivery_origin(received),
        verified: (trust == DeliveryTrust::Verified).then_some(true),
        delivery: body,
    };
    serde_json::to_string(&line).unwrap_or_default()
}

fn delivery_origin(received: &ReceivedDelivery) -> String {
    callback_origin(&received.delivery.callback, &received.delivery.channel.id)
}

/// An invitation, with the command that accepts it.
pub(super) fn print_invite(common: &CommonArgs, event: &StreamEvent) {
    let invite = match serde_json::from_str::<ChannelInvite>(&event.data) {
        Ok(invite) if !common.json => invite,
        Ok(_) | Err(_) => return super::print::print_event(common, event),
    };
    let id = output::escape_controls(&invite.channel.id);
    output::print_line(&format!(
        "{} invites you to {} as {}: chorus channel accept {id}",
        output::paint_text(
            output::STRONG_STYLE,
            &output::escape_controls(&invite.invited_by)
        ),
        output::paint_text(
            output::FAINT_STYLE,
            &format!("#{}", output::escape_controls(&invite.channel.name))
        ),
        output::escape_controls(invite.name.as_str()),
    ));
}
