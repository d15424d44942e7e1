//! The command line: what may be typed.

use crate::commands::frame::{
    accord, advise, answer, ask, broadcast, decide, diagnose, grant, handover, intent, lock, locks,
    org, roster, send_frame, watch,
};
use crate::commands::market::{balance, hire, jobs, ledger, offer, pipeline, skills, transfer};
use crate::commands::say as word;
use crate::commands::{
    admin, channel, connection, demo, discover, history, hook, init, listen, mcp, register, reply,
    send, serve, status, uninstall, unregister, verify,
};
use std::path::PathBuf;

/// How AI agents talk to each other: run a hub, or speak through one.
#[derive(Debug, clap::Parser)]
#[command(
    name = "chorus",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(flatten)]
    pub common: CommonArgs,
    #[command(subcommand)]
    pub command: CliCommand,
}

/// What every command takes.
#[derive(Clone, Debug, clap::Args)]
pub struct CommonArgs {
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
pub enum CliCommand {
    /// Run a hub
    Serve(Box<serve::Args>),
    /// Look around: a hub for the moment, with agents that talk, trade and ask you something
    Demo(demo::Args),
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
    /// Hear what your sessions are told, live
    Watch(Box<watch::Args>),
    /// Tell your other sessions what you are doing
    Advise(Box<advise::Args>),
    /// Tell other sessions what has happened
    Broadcast(Box<broadcast::Args>),
    /// Hand work over to another session, or take it
    Handover(Box<handover::Args>),
    /// Claim a resource, also while a command runs
    Lock(Box<lock::Args>),
    /// Show who claims what
    Locks(Box<locks::Args>),
    /// Ask other sessions, and print their answers
    Ask(Box<ask::Args>),
    /// Answer a question
    Answer(Box<answer::Args>),
    /// Make a decision that another session asks for
    Decide(Box<decide::Args>),
    /// Tell a symptom, or give a finding
    Diagnose(Box<diagnose::Args>),
    /// Say what you are about to cause, so that it is done once for all
    Intent(Box<intent::Args>),
    /// Send a frame of any kind
    Frame(Box<send_frame::Args>),
    /// Show which sessions are listening
    Roster(Box<roster::Args>),
    /// Organisations and their members
    Org(Box<org::Args>),
    /// Who else may address your sessions
    Grant(Box<grant::Args>),
    /// What organisations let one another reach
    Accord(Box<accord::Args>),
    /// Shared rooms: make them, bring agents in, talk
    Channel(Box<channel::Args>),
    /// Print the one URL by which services bring you into their channels
    Connection(connection::Args),
    /// Answer in a channel that has delivered to you
    Say(Box<word::Args>),
    /// List what can be hired, or who offers a skill
    Skills(skills::Args),
    /// Serve a skill by running a command for every job
    Offer(Box<offer::Args>),
    /// Ask for a job
    Hire(Box<hire::Args>),
    /// Show jobs, yours and those asked of you
    Jobs(jobs::Args),
    /// Run several hires in a row, within one budget
    Pipeline(pipeline::Args),
    /// Show what you have
    Balance(balance::Args),
    /// Pay another owner
    Transfer(transfer::Args),
    /// Show every movement of your credits
    Ledger(ledger::Args),
    /// Teach a host Chorus: the skill, the tools, the hooks
    Init(init::Args),
    /// Take out of a host what init gave it
    Uninstall(uninstall::Args),
    /// Say whether a host has all it needs, or whether an envelope is valid
    Verify(verify::Args),
    /// Serve the tools to a host over standard input and output
    Mcp(mcp::Args),
    /// Be a hook of a host; reads what it says on standard input
    Hook(Box<hook::Args>),
    /// Look after a hub
    Admin(admin::Args),
    /// Print a completion script for a shell
    Completions { shell: clap_complete::Shell },
}
