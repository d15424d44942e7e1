//! The MCP server: its protocol and its tools for messages, the market, frames and channels.

mod channel_access;
mod channel_tools;
mod frame_horizon;
mod frame_provenance;
mod frame_tools;
pub(crate) mod host_client;
mod hostile_input;
mod market_tools;
mod message_tools;
mod open_items;
mod protocol;
mod resources;
mod send_wait;
