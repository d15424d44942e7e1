//! The market: skills, jobs, the ledger and reputation.

mod board;
mod board_promises;
mod clock_leaps;
mod gaming;
mod handover;
mod job_endings;
mod job_endpoints;
mod job_list;
mod jobs;
mod ledger;
mod listings;
mod owners;
mod promises;
mod random_acts;
mod reputation;
mod retention;
mod skill_pages;
mod skills;
mod worker_reports;
