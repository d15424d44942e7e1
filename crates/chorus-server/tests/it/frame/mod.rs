//! Frames: submission, scopes, streams, filters, organisations and refusals.

mod accords;
mod filters;
mod grants;
mod identity;
mod invalid_requests;
mod limits;
mod load;
mod memory;
mod open_items;
mod open_items_of_organisations;
mod organisations;
mod refusals;
mod resume;
mod scopes;
mod stream;
mod submission;
mod submission_refusals;
