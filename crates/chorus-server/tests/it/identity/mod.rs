//! Agents: registration, keys, invites, the directory and removal.

mod directory;
mod invites;
mod keys;
mod operator_registration;
mod registration;
mod unregister;
