//! Channel deliveries of an inbox, and the saved callback of each channel, so that an agent can answer after a restart.

use crate::event_stream::StreamEvent;
use crate::files::{IdentityFiles, atomic_file, read_list};
use crate::{Error, Result, limits};
use chorus_wire::channel::delivery::ChannelDelivery;
use chorus_wire::secret::Secret;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One delivery, and the body as the service wrote it.
#[derive(Clone, Debug)]
pub struct ReceivedDelivery {
    pub delivery: ChannelDelivery,
    pub body: String,
}

impl ReceivedDelivery {
    /// The delivery in an inbox event; `None` for an event of another kind.
    pub fn from_event(event: &StreamEvent) -> Result<Option<Self>> {
        if event.name != "channel" {
            return Ok(None);
        }
        let delivery =
            serde_json::from_str(&event.data).map_err(|e| Error::Answer(e.to_string()))?;
        Ok(Some(Self {
            delivery,
            body: event.data.clone(),
        }))
    }
}

/// The last delivery of a channel and its callback. The callback is a secret, so the file is private.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedCallback {
    pub channel: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    pub message: String,
    pub sender: String,
    pub callback: Secret,
    /// The name of the service, which tells two services of one origin apart.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub service: Option<String>,
}

/// Where a callback leads: the origin of its URL. A service may deliver under any channel id, so an id alone does not say
/// whose channel it is. A callback of a hub names its channel in the path; if it is another one than that of the delivery,
/// the origin is completed by it, because the delivery is not of that hub.
pub fn callback_origin(callback: &Secret, channel: &str) -> String {
    let Ok(url) = url::Url::parse(callback.expose()) else {
        return String::new();
    };
    let origin = url.origin().ascii_serialization();
    let segments: Vec<&str> = url.path().split('/').collect();
    match segments.as_slice() {
        [.., "channels", id, "inbox", _]
            if *id != crate::http::encode_segment(channel) && *id != channel =>
        {
            format!("{origin}/channels/{id}")
        }
        _ => origin,
    }
}

impl SavedCallback {
    /// Where the callback leads.
    pub fn origin(&self) -> String {
        callback_origin(&self.callback, &self.channel)
    }

    fn file_path(files: &IdentityFiles) -> PathBuf {
        files.beside_state("callbacks.json")
    }

    /// The saved callbacks of all channels, the newest last.
    pub fn read_all(files: &IdentityFiles) -> Result<Vec<Self>> {
        read_list(&Self::file_path(files))
    }

    /// Saves the callback of a delivery. It replaces the previous one of the same channel, origin and service, never one of
    /// another.
    pub fn save_callback(files: &IdentityFiles, delivery: &ChannelDelivery) -> Result<()> {
        let mut callbacks = Self::read_all(files)?;
        let origin = callback_origin(&delivery.callback, &delivery.channel.id);
        callbacks.retain(|saved| {
            saved.channel != delivery.channel.id
                || saved.origin() != origin
                || saved.service != delivery.channel.service
        });
        callbacks.push(Self {
            channel: delivery.channel.id.clone(),
            name: delivery.channel.name.clone(),
            message: delivery.message.id.clone(),
            sender: delivery.message.sender.clone(),
            callback: delivery.callback.clone(),
            service: delivery.channel.service.clone(),
        });
        let excess = callbacks.len().saturating_sub(limits::MAX_SAVED_CALLBACKS);
        callbacks.drain(..excess);
        let text = serde_json::to_string(&callbacks).map_err(|e| Error::Input(e.to_string()))?;
        atomic_file::replace_file(&Self::file_path(files), text.as_bytes())
    }
}
