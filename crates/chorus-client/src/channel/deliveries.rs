//! Deliveries as they come by an inbox, and the last of each channel, kept so that an agent can still answer after a restart.

use crate::files::{Place, atomic, read_small};
use crate::stream::Event;
use crate::{Error, Result, limits};
use chorus_wire::channel::delivery::Delivery;
use chorus_wire::secret::Secret;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One delivery, and the body as the service wrote it.
#[derive(Clone, Debug)]
pub struct Delivered {
    pub delivery: Delivery,
    pub body: String,
}

impl Delivered {
    /// The delivery that an event of an inbox carries; `None` when it carries something else.
    pub fn of(event: &Event) -> Result<Option<Self>> {
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

/// Where the last word of a channel came from and goes back to. Its callback is a secret, so the file is private.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    pub channel: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    pub message: String,
    pub sender: String,
    pub callback: Secret,
}

impl Kept {
    fn file(place: &Place) -> PathBuf {
        let state = place
            .state
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        place
            .state
            .with_file_name(state.replace("state.json", "callbacks.json"))
    }

    /// The last one of every channel, the newest last.
    pub fn all(place: &Place) -> Result<Vec<Self>> {
        let path = Self::file(place);
        let Some(text) = read_small(&path)? else {
            return Ok(Vec::new());
        };
        serde_json::from_str(&text)
            .map_err(|e| Error::file(&path, format!("{e}; remove it to start afresh")))
    }

    /// Keeps the way back of a delivery in place of its channel's last one.
    pub fn keep(place: &Place, delivery: &Delivery) -> Result<()> {
        let mut all = Self::all(place)?;
        all.retain(|kept| kept.channel != delivery.channel.id);
        all.push(Self {
            channel: delivery.channel.id.clone(),
            name: delivery.channel.name.clone(),
            message: delivery.message.id.clone(),
            sender: delivery.message.sender.clone(),
            callback: delivery.callback.clone(),
        });
        let over = all.len().saturating_sub(limits::CALLBACKS_KEPT);
        all.drain(..over);
        let text = serde_json::to_string(&all).map_err(|e| Error::Input(e.to_string()))?;
        atomic::replace(&Self::file(place), text.as_bytes())
    }
}
