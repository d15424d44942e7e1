//! The market commands: skills, jobs and credits, one file each.

pub mod balance;
pub mod board;
pub mod format_job;
pub mod hire;
mod job_command;
mod job_waiter;
pub mod jobs;
pub mod ledger;
pub mod offer;
pub mod pipeline;
pub mod read_input;
pub mod reputation;
pub mod skills;
pub mod transfer;
