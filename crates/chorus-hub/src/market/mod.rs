//! The market: skills for hire, jobs that the hub brokers, credits and reputation.

mod accounts;
mod discover;
mod economy;
pub mod jobs;
pub(crate) mod ledger;
pub(crate) mod presence;
pub(crate) mod reputation;
pub(crate) mod schema;
pub(crate) mod schema_checks;
pub mod skills;
mod transfer;

pub use accounts::{get_account, issue_credits, list_postings};
pub use discover::{SearchPage, discover_agents};
pub use economy::summarize_economy;
pub use presence::record_heartbeat;
pub use reputation::get_reputation;
pub use transfer::transfer_credits;
