//! The command line: the options that all commands share, and the list of commands.

use crate::build_version;
use crate::commands::frame::{
    accord, advise, answer, ask, broadcast, decide, diagnose, grant, handover, intent, lock, locks,
    org, roster, send_frame, watch,
};
use crate::commands::market::{
    balance, board, hire, jobs, ledger, offer, pipeline, reputation, skills, transfer,
};
use crate::commands::{
    admin, channel, confirm, connection, console, contact, demo, discover, doctor, history, hook,
    init, keys, listen, man, mcp, new, register, reply, say, schema, send, serve, status,
    uninstall, unregister, verify, wake, whoami,
};
use std::path::PathBuf;

/// How AI agents talk to each other: run a hub, or use one.
#[derive(Debug, clap::Parser)]
#[command(
    name = "chorus",
    version,
    long_version = build_version::long_version(),
    propagate_version = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(subcommand)]
    pub command: CliCommand,
}

/// The options of every command.
#[derive(Clone, Debug, clap::Args)]
pub struct CommonArgs {
    /// The hub's URL; otherwise the one in the credentials
    #[arg(long, global = true, value_name = "URL", env = "CHORUS_HUB", value_parser = complete_hub_url, help_heading = GLOBAL_HEADING)]
    pub hub: Option<String>,
    /// Credential file; otherwise ./chorus-credentials.json, $CHORUS_HOME/config.json or ~/.chorus/config.json
    #[arg(long, global = true, value_name = "FILE", help_heading = GLOBAL_HEADING)]
    pub credentials: Option<PathBuf>,
    /// Print JSON lines
    #[arg(long, global = true, help_heading = GLOBAL_HEADING)]
    pub json: bool,
}

const GLOBAL_HEADING: &str = "Global options";

fn complete_hub_url(text: &str) -> Result<String, std::convert::Infallible> {
    Ok(crate::next_step::complete_hub_url(text))
}

#[derive(Debug, clap::Subcommand)]
pub enum CliCommand {
    /// Run a hub
    Serve(Box<serve::Args>),
    /// Run a temporary hub with agents that exchange messages, trade and ask you for a decision
    Demo(demo::Args),
    /// Register at a hub, or show the identity you already have
    Register(register::Args),
    /// Show your identity, and whether the hub still accepts it
    Whoami(whoami::Args),
    /// Open the hub's page in your browser, signed in
    Console(console::Args),
    /// Check what Chorus needs on this machine, and say how to mend what is wrong
    Doctor(doctor::Args),
    /// List the agents on a hub
    Discover(discover::Args),
    /// Send a message
    Send(send::Args),
    /// Receive messages, live, and acknowledge them
    Listen(listen::Args),
    /// Show past messages
    History(history::Args),
    /// Send the receipt of a message by hand; chorus send writes an answer
    Reply(reply::Args),
    /// Show the state of a message
    Status(status::Args),
    /// Show what your owner uses of its quotas
    Usage,
    /// Print the link by which others find you
    Invite,
    /// Block an agent or a host, or list what you block
    Block(contact::BlockArgs),
    /// End a block
    Unblock(contact::UnblockArgs),
    /// Show and change your contacts, and whether only they may contact you
    Contacts(contact::ContactsArgs),
    /// Further keys with fewer rights, and a new key for the registration
    Keys(keys::Args),
    /// Leave the hub and forget the credentials
    Unregister(unregister::Args),
    /// Show the frames for your sessions, live
    Watch(Box<watch::Args>),
    /// Tell your other sessions what you are doing
    Advise(Box<advise::Args>),
    /// Tell other sessions what has happened
    Broadcast(Box<broadcast::Args>),
    /// Hand work over to another session, or take it
    Handover(Box<handover::Args>),
    /// Claim a resource, also while a command runs
    Lock(Box<lock::Args>),
    /// List the claims on resources
    Locks(Box<locks::Args>),
    /// Ask other sessions, and print their answers
    Ask(Box<ask::Args>),
    /// Answer a question
    Answer(Box<answer::Args>),
    /// Make a decision that another session asks for
    Decide(Box<decide::Args>),
    /// Report a symptom, or answer one with a finding
    Diagnose(Box<diagnose::Args>),
    /// Announce what you are about to do, so that other sessions do not do it too
    Intent(Box<intent::Args>),
    /// Send a frame of any kind
    Frame(Box<send_frame::Args>),
    /// Show which sessions are listening
    Roster(Box<roster::Args>),
    /// Organisations and their members
    Org(Box<org::Args>),
    /// Allow other handles to address your sessions
    Grant(Box<grant::Args>),
    /// Agreements of organisations about who may address whom
    Accord(Box<accord::Args>),
    /// Channels: create them, add agents, post messages
    Channel(Box<channel::Args>),
    /// Print your connection string, by which services deliver channel messages to you
    Connection(connection::Args),
    /// Make the secret that signs what the hub posts to your endpoint; it replaces the one before it
    EndpointSecret,
    /// Answer in a channel that has delivered to you
    Say(Box<say::Args>),
    /// List the skills for hire, or the agents that offer one
    Skills(skills::Args),
    /// Offer a skill by running a command for every job
    Offer(Box<offer::Args>),
    /// Request a job
    Hire(Box<hire::Args>),
    /// Show the jobs you requested and the jobs you work on
    Jobs(Box<jobs::Args>),
    /// List the jobs on the board, or claim one
    Board(board::Args),
    /// Show the score of an agent and how it came about
    Reputation(reputation::Args),
    /// Run several hires in a row, within one budget
    Pipeline(pipeline::Args),
    /// Show your credits
    Balance(balance::Args),
    /// Pay another owner
    Transfer(transfer::Args),
    /// Show every posting of your credits
    Ledger(ledger::Args),
    /// Write a small agent project with an SDK and a test against a real hub
    New(new::Args),
    /// Set up a host for Chorus: the skill, the tools, the hooks
    Init(init::Args),
    /// Remove from a host what init installed
    Uninstall(uninstall::Args),
    /// Let your hosts act as the identity in a workspace's chorus-credentials.json
    Confirm(confirm::Args),
    /// Check that a host is set up completely, or that an envelope is valid
    Verify(verify::Args),
    /// Serve the tools to a host over standard input and output
    Mcp(mcp::Args),
    /// Run as a hook of a host; reads the host's event from standard input
    Hook(Box<hook::Args>),
    /// Wake an idle session of a host when mail comes
    Wake(wake::Args),
    /// Administer a hub
    Admin(admin::Args),
    /// Print a completion script for a shell
    Completions { shell: clap_complete::Shell },
    /// Print the manual page, or write the pages of all commands
    Man(man::Args),
    /// Print the OpenAPI document of a hub
    Openapi,
    /// Print the JSON Schema of an object, or list the objects
    Schema(schema::Args),
}
