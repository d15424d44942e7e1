//! The market from the outside: skills on offer, jobs asked for and done, credits.

mod accounts;
mod jobs;
mod skills;

pub use jobs::{JobRequest, JobRole, PendingJob};

/// A new id for a job or a transfer: whoever makes it can repeat a request without repeating what it does.
pub fn random_id() -> String {
    uuid::Builder::from_random_bytes(rand::random())
        .into_uuid()
        .to_string()
}
