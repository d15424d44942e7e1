//! Frame calls: send frames, read frame streams, track lock claims and open items, manage grants and organisations.

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
pub use open_items::{ParsedOpenItem, format_frame_ref, parse_open_items};
pub use orgs::AccordProposal;
