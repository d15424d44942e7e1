//! The market: skills, jobs, the ledger and reputation.

mod gaming;
mod job_endings;
mod job_endpoints;
mod job_list;
mod jobs;
mod ledger;
mod owners;
mod reputation;
mod retention;
mod skill_pages;
mod skills;
