//! Frames from the session's side: saying them, hearing them with a recipient's duties, and who claims what.

mod calls;
mod hear;
mod lease;
mod moot;
mod orgs;
mod seen;
mod speaker;

pub use hear::{Frames, Heard, Listening, Now};
pub use lease::{Claim, Claims, covers};
pub use moot::{Handovers, Moments, frame_ref};
pub use orgs::Proposal;
pub use speaker::{Speaker, new_id, session_of};
