//! Market calls: skills, jobs and credits.

mod accounts;
mod jobs;
mod skills;

pub use jobs::{JobRequest, JobRole, PendingJob};

/// A new id for a job or a transfer. The client chooses it, so that a repeated request takes effect once.
pub fn random_id() -> String {
    uuid::Builder::from_random_bytes(rand::random())
        .into_uuid()
        .to_string()
}
