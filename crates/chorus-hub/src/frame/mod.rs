//! The rules of frames: who may announce what to whom, and how it reaches their live sessions. Nothing here touches the store
//! but the question who may; a frame lives in the rings of the handles it went to, for minutes, and nowhere else.

pub mod accords;
mod circles;
pub mod grants;
mod joint;
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
mod tape;

pub use open::{Opening, open};
pub use ring::{RETENTION, Retention};
pub(crate) use rooms::Rooms;
pub use roster::roster;
pub(crate) use senders::Senders;
pub(crate) use stream::Subscription;
pub use submit::{Submitter, submit};
pub(crate) use tape::{answer, take};

use crate::delivery::Ending;
use crate::store::Notice;
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
        self.circles
            .forget(orgs.into_iter().map(circles::Touched::Org));
    }

    /// Forgets what a notice of another hub's write speaks of.
    pub fn heed(&self, notice: &Notice) {
        self.forget_orgs(
            notice
                .orgs
                .iter()
                .filter_map(|handle| Handle::parse(handle)),
        );
        let grants = notice
            .grants
            .iter()
            .map(|(grantor, grantee)| (*grantor, *grantee));
        self.circles
            .forget(grants.map(|(grantor, grantee)| circles::Touched::Grant { grantor, grantee }));
    }

    /// The memory that all hubs share begins at this place, or was lost and begins anew.
    pub fn begin(&self, epoch: u64, floor: u64) {
        self.rooms.begin(epoch, floor);
    }

    /// Forgets everything that was looked up.
    pub fn forget_all(&self) {
        self.circles.forget_all();
    }

    /// How many live sessions a principal has here.
    pub fn sessions_of(&self, principal: i64) -> usize {
        self.rooms.sessions(principal)
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
