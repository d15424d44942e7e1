//! Skills, jobs and credits: a file per verb.

pub mod balance;
pub mod hire;
pub mod jobs;
pub mod ledger;
pub mod offer;
pub mod pipeline;
mod read;
mod show;
pub mod skills;
pub mod transfer;
mod wait;
mod work;
