//! Limits how many callbacks stream their events at once: in total and per member.

use chorus_hub::MemberId;
use chorus_wire::{Error, ErrorCode, limits};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of open callback streams by member.
#[derive(Default)]
pub struct CallbackStreamSlots(Mutex<HashMap<MemberId, usize>>);

/// One open callback stream; dropping it frees the slot.
pub struct CallbackStreamSlot<'a> {
    slots: &'a CallbackStreamSlots,
    member: MemberId,
}

impl CallbackStreamSlots {
    fn lock_counts(&self) -> MutexGuard<'_, HashMap<MemberId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A slot, or the error that tells the client to post its events one by one.
    pub fn acquire(&self, member: MemberId) -> Result<CallbackStreamSlot<'_>, Error> {
        let mut counts = self.lock_counts();
        if counts.values().sum::<usize>() >= limits::CALLBACK_STREAMS {
            return Err(Error::unavailable("too many callbacks are streaming"));
        }
        if counts
            .get(&member)
            .is_some_and(|count| *count >= limits::CALLBACK_STREAMS_PER_MEMBER)
        {
            return Err(ErrorCode::TooManyStreams.into());
        }
        *counts.entry(member).or_default() += 1;
        Ok(CallbackStreamSlot {
            slots: self,
            member,
        })
    }
}

impl Drop for CallbackStreamSlot<'_> {
    fn drop(&mut self) {
        let mut counts = self.slots.lock_counts();
        match counts.get_mut(&self.member) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) | None => drop(counts.remove(&self.member)),
        }
    }
}
