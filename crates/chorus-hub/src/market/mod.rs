//! Skills for hire: jobs brokered by the hub, credits, and what becomes of both.

mod accounts;
mod discover;
mod economy;
pub mod jobs;
pub(crate) mod ledger;
pub(crate) mod liveness;
pub(crate) mod reputation;
pub(crate) mod schema;
pub mod skills;
mod transfer;

pub use accounts::{account, audit, credit};
pub use discover::discover;
pub use economy::economy;
pub use liveness::heartbeat;
pub use reputation::reputation;
pub use transfer::transfer;
