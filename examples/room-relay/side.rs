//! What the relay remembers of one room: where it answers, what came from there, what was said there.

use chorus_wire::channel::delivery::ChannelDelivery;
use chorus_wire::secret::Secret;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::MutexGuard;

/// Deliveries and sentences that are remembered; a service that repeats itself does so soon.
const REMEMBERED: usize = 256;

#[derive(Default)]
pub struct Side {
    callback: Mutex<Option<Secret>>,
    /// What the relay said here lately: a service that delivers an agent's own words back must not make an echo.
    said: Mutex<VecDeque<String>>,
    /// The ids that were passed on; held while one is.
    passed: tokio::sync::Mutex<VecDeque<String>>,
}

/// What a delivery is.
pub enum Heard {
    New,
    /// It was passed on; the acknowledgement got lost.
    Before,
    /// It is what the relay itself said.
    Ourselves,
}

pub struct Turn<'a> {
    side: &'a Side,
    passed: MutexGuard<'a, VecDeque<String>>,
}

fn remember(memory: &mut VecDeque<String>, text: String) {
    if memory.len() == REMEMBERED {
        memory.pop_front();
    }
    memory.push_back(text);
}

impl Side {
    /// The newest callback is the one to use (CHN-39).
    pub fn answers_at(&self, callback: &Secret) {
        *self.callback.lock().unwrap_or_else(PoisonError::into_inner) = Some(callback.clone());
    }

    pub fn callback(&self) -> Option<Secret> {
        self.callback
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// It is dead; a newer one stays.
    pub fn forget(&self, dead: &Secret) {
        let mut callback = self.callback.lock().unwrap_or_else(PoisonError::into_inner);
        if callback.as_ref() == Some(dead) {
            *callback = None;
        }
    }

    pub fn says(&self, text: &str) {
        remember(
            &mut self.said.lock().unwrap_or_else(PoisonError::into_inner),
            text.to_owned(),
        );
    }

    pub async fn turn(&self) -> Turn<'_> {
        Turn {
            side: self,
            passed: self.passed.lock().await,
        }
    }
}

impl Turn<'_> {
    pub fn hear(&self, delivery: &ChannelDelivery) -> Heard {
        let said = self
            .side
            .said
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.passed.contains(&delivery.message.id) {
            Heard::Before
        } else if said.contains(&delivery.message.content) {
            Heard::Ourselves
        } else {
            Heard::New
        }
    }

    pub fn passed_on(&mut self, delivery: &ChannelDelivery) {
        remember(&mut self.passed, delivery.message.id.clone());
    }
}
