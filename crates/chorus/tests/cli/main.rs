//! Tests of the command line: the real binary against a real hub, in temporary folders.
#![expect(
    clippy::unwrap_used,
    reason = "a step that cannot be taken is a failure"
)]

mod acme;
mod acme_authority;
mod acme_check;
mod acme_failures;
mod acme_server;
mod actors;
mod admin;
mod agents_docs;
mod authority;
mod backup_rotation;
mod channel;
mod channel_hubs;
mod channel_origins;
mod channel_secrets;
mod configuration;
mod console;
mod contact;
mod copy;
mod crash;
mod crash_board;
mod crash_board_checks;
mod crash_market;
mod cursor_hooks;
mod damaged_files;
mod data_faults;
mod demo;
mod deploy;
mod deploy_unit;
mod direct;
mod doctor;
mod errors;
mod exec;
mod faults;
mod frame;
mod frame_docs;
mod frame_hooks;
mod frame_locks;
mod frame_open;
mod frame_orgs;
mod frame_provenance;
mod frame_receivers;
#[path = "../../../chorus-server/tests/it/support/front.rs"]
mod front;
mod host_hooks;
mod init;
mod keys;
mod listen;
mod market;
mod market_board;
mod mcp;
mod mcp_waits;
mod names;
mod network;
mod new;
mod nginx;
mod otlp;
mod plugin;
#[path = "../../../chorus-server/tests/it/support/postgres.rs"]
mod postgres;
mod public_hub;
mod public_hub_server;
mod register;
mod registration;
mod restore;
mod schema;
mod secure_bus;
mod secure_database;
mod serve_terminal;
mod servers;
mod shown;
mod shutdown;
mod skew;
mod skewed_hubs;
mod split;
mod split_bus;
mod split_load;
mod talk;
mod terminal_output;
mod verify;
mod wake;
mod wake_init;
mod workspace_identity;
