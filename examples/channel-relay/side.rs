//! The relay's state for one channel: its last callback, the relayed deliveries, and the texts posted to it.

use chorus_wire::channel::delivery::ChannelDelivery;
use chorus_wire::secret::Secret;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::MutexGuard;

/// Max remembered ids and texts; a service repeats a delivery soon or not at all.
const MAX_REMEMBERED: usize = 256;

#[derive(Default)]
pub struct ChannelSide {
    callback: Mutex<Option<Secret>>,
    /// The texts that the relay posted lately: a service that delivers them back must not cause an echo.
    sent_texts: Mutex<VecDeque<String>>,
    /// The ids of relayed deliveries; locked while one is relayed.
    relayed_ids: tokio::sync::Mutex<VecDeque<String>>,
}

/// Whether a delivery must be relayed.
pub enum DeliveryKind {
    New,
    /// It was relayed before; the acknowledgement was lost.
    AlreadyRelayed,
    /// It is a text of the relay itself.
    OwnEcho,
}

pub struct RelayTurn<'a> {
    side: &'a ChannelSide,
    relayed_ids: MutexGuard<'a, VecDeque<String>>,
}

fn remember(memory: &mut VecDeque<String>, text: String) {
    if memory.len() == MAX_REMEMBERED {
        memory.pop_front();
    }
    memory.push_back(text);
}

impl ChannelSide {
    /// The newest callback is the one to use (CHN-39).
    pub fn save_callback(&self, callback: &Secret) {
        *self.callback.lock().unwrap_or_else(PoisonError::into_inner) = Some(callback.clone());
    }

    pub fn callback(&self) -> Option<Secret> {
        self.callback
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Forgets a dead callback, unless a newer one was saved.
    pub fn drop_callback(&self, dead: &Secret) {
        let mut callback = self.callback.lock().unwrap_or_else(PoisonError::into_inner);
        if callback.as_ref() == Some(dead) {
            *callback = None;
        }
    }

    pub fn record_sent(&self, text: &str) {
        remember(
            &mut self
                .sent_texts
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
            text.to_owned(),
        );
    }

    /// Waits until no other delivery of this side is being relayed.
    pub async fn lock_relayed(&self) -> RelayTurn<'_> {
        RelayTurn {
            side: self,
            relayed_ids: self.relayed_ids.lock().await,
        }
    }
}

impl RelayTurn<'_> {
    pub fn classify(&self, delivery: &ChannelDelivery) -> DeliveryKind {
        let sent_texts = self
            .side
            .sent_texts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.relayed_ids.contains(&delivery.message.id) {
            DeliveryKind::AlreadyRelayed
        } else if sent_texts.contains(&delivery.message.content) {
            DeliveryKind::OwnEcho
        } else {
            DeliveryKind::New
        }
    }

    pub fn record_relayed(&mut self, delivery: &ChannelDelivery) {
        remember(&mut self.relayed_ids, delivery.message.id.clone());
    }
}
