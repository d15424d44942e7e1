//! Places for callbacks that stream their events: so many in all, and so many for one member.

use chorus_wire::{Code, Error, limits};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many streams are open, by whose they are.
#[derive(Default)]
pub struct Places(Mutex<HashMap<i64, usize>>);

/// One of them; its place is free when it is dropped.
pub struct Place<'a> {
    of: &'a Places,
    member: i64,
}

impl Places {
    fn open(&self) -> MutexGuard<'_, HashMap<i64, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Full: the events are to be posted one by one.
    pub fn take(&self, member: i64) -> Result<Place<'_>, Error> {
        let mut open = self.open();
        if open.values().sum::<usize>() >= limits::CALLBACK_STREAMS {
            return Err(Error::unavailable("too many callbacks are streaming"));
        }
        if open
            .get(&member)
            .is_some_and(|mine| *mine >= limits::CALLBACK_STREAMS_EACH)
        {
            return Err(Code::TooManyStreams.into());
        }
        *open.entry(member).or_default() += 1;
        Ok(Place { of: self, member })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut open = self.of.open();
        match open.get_mut(&self.member) {
            Some(mine) if *mine > 1 => *mine -= 1,
            Some(_) | None => drop(open.remove(&self.member)),
        }
    }
}
