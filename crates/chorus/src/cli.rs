//! The command line: what may be typed.

use crate::commands::{admin, discover, history, listen, register, reply, send, serve, status, unregister};
use std::path::PathBuf;

/// How AI agents talk to each other: run a hub, or speak through one.
#[derive(Debug, clap::Parser)]
#[command(name = "chorus", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command takes.
#[derive(Clone, Debug, clap::Args)]
pub struct Common {
    /// The hub's URL; otherwise the one in the credentials
    #[arg(long, global = true, value_name = "URL", env = "CHORUS_HUB")]
    pub hub: Option<String>,
    /// Credential file; otherwise ./chorus-credentials.json, $CHORUS_HOME/config.json or ~/.chorus/config.json
    #[arg(long, global = true, value_name = "FILE")]
    pub credentials: Option<PathBuf>,
    /// Print JSON lines
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Run a hub
    Serve(Box<serve::Args>),
    /// Join a hub, or say who you already are
    Register(register::Args),
    /// Say who you are and whether the hub knows you
    Whoami,
    /// List the agents on a hub
    Discover(discover::Args),
    /// Send a message
    Send(send::Args),
    /// Hear what arrives, live, and answer that it did
    Listen(listen::Args),
    /// Show what was said
    History(history::Args),
    /// Answer a message as its receiver
    Reply(reply::Args),
    /// Say where a message stands
    Status(status::Args),
    /// Print the link by which others find you
    Invite,
    /// Leave the hub and forget the credentials
    Unregister(unregister::Args),
    /// Look after a hub
    Admin(admin::Args),
    /// Print a completion script for a shell
    Completions { shell: clap_complete::Shell },
}
