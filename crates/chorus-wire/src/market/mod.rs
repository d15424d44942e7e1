//! The wire types of the market: credits, transfers, skills, jobs and reputation (the jobs document).

pub mod discover;
pub mod heartbeat;
pub mod job;
pub mod job_view;
pub mod reputation;
pub mod skill;
pub mod transfer;
