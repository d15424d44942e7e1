//! Skills for hire: jobs brokered by the hub, credits, and what becomes of both.

mod accounts;
mod economy;
pub(crate) mod jobs;
pub(crate) mod ledger;
mod transfer;

pub use accounts::{account, audit, credit};
pub use economy::economy;
pub use transfer::transfer;
