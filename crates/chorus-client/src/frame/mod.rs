//! Frames from the session's side: saying them, hearing them with a recipient's duties, and who claims what.

mod frame_sender;
mod frame_stream;
mod lock_claims;
mod open_items;
mod orgs;
mod seen_ids;
mod submit_frame;

pub use frame_sender::{FrameSender, frame_session, random_uuid};
pub use frame_stream::{FrameStream, FrameStreamEvent, NowFn, OpenedSession};
pub use lock_claims::{LockClaim, LockClaims, covers_resource};
pub use open_items::{BindingMomentLog, HandoverLog, format_frame_ref};
pub use orgs::AccordProposal;
