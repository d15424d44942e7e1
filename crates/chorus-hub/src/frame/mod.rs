//! The rules of frames: who may announce what to whom, and how it reaches their live sessions. Nothing here touches the store
//! but the question who may; a frame lives in the rings of the handles it went to, for minutes, and nowhere else.

pub mod accords;
mod circles;
pub mod grants;
mod label;
mod open;
pub mod orgs;
mod reach;
mod ring;
mod room;
mod rooms;
mod roster;
mod senders;
mod session;
mod stream;
mod submit;

pub use open::{Opening, open};
pub use ring::{RETENTION, Retention};
pub(crate) use rooms::Rooms;
pub use roster::roster;
pub(crate) use senders::Senders;
pub(crate) use stream::Subscription;
pub use submit::{Submitter, submit};

use crate::delivery::Ending;
use chorus_wire::identity::Handle;
use std::time::Duration;

/// What the hub keeps of frames.
#[derive(Default)]
pub(crate) struct Frames {
    rooms: Rooms,
    senders: Senders,
    circles: circles::Circles,
}

impl Frames {
    /// Ends every stream of the principal. A gone one's frames go with it; a new key finds what the old one was sent.
    pub fn end(&self, principal: i64, why: Ending, now: Duration) {
        self.rooms.end(principal, why, now);
    }

    /// These organisations have changed, or are no more; to be called after the commit.
    pub fn forget_orgs(&self, orgs: impl IntoIterator<Item = Handle>) {
        self.circles.forget(orgs.into_iter().map(circles::Touched::Org));
    }

    /// Ends every stream.
    pub fn drain(&self, now: Duration) {
        self.rooms.drain(now);
    }

    /// Lets go of what is past its time.
    pub fn sweep(&self, now: Duration) {
        self.rooms.sweep(now);
        self.senders.sweep(now);
    }
}
