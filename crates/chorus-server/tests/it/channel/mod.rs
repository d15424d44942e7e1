//! Channels: members, messages, deliveries, callbacks and the agent host.

mod agent_host;
mod callback_streams;
mod callbacks;
mod channels;
mod contents;
mod delivery;
mod delivery_failures;
mod delivery_retries;
mod guessed_callbacks;
mod hosted_origin;
mod hosted_services;
mod invitations;
mod members;
mod messages;
mod secrets;
mod secrets_at_rest;
mod shared_bodies;
mod untaken_deliveries;
