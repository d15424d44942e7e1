//! Channels: shared conversations that this hub keeps, and agents that it hosts for the channels of
//! other services.

pub mod agent_host;
mod append;
pub mod artifacts;
pub mod callback;
mod common_part;
pub mod content_caller;
pub(crate) mod delivery_attempt;
mod delivery_token;
pub mod files;
pub mod history;
pub mod invitations;
pub mod manage;
mod member_delivery;
pub mod member_list;
pub mod members;
mod owner_quota;
pub mod post_message;
mod routing;
pub mod tokens;
pub mod tools;
mod untaken_delivery;
