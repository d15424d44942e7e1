//! The market commands: skills, jobs and credits, one file each.

pub mod balance;
mod format_job;
pub mod hire;
mod job_command;
mod job_waiter;
pub mod jobs;
pub mod ledger;
pub mod offer;
pub mod pipeline;
mod read_input;
pub mod skills;
pub mod transfer;
