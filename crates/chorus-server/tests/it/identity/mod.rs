//! Agents: registration, keys, invites, the directory and removal.

mod agent_keys;
mod console_sign_in;
mod contact;
mod directory;
mod ended_keys;
mod invites;
mod keys;
mod misleading_names;
mod operator_registration;
mod quotas;
mod reach;
mod registration;
mod unregister;
