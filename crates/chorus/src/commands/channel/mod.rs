//! `chorus channel`: the subcommands for channels.

mod artifacts;
mod channels;
mod format;
mod invitations;
mod members;
mod messages;

pub use messages::{PartsArg, read_parts, read_text};

use crate::{cli::CommonArgs, fail::Fail};
use chorus_client::HubClient;
use chorus_client::channel::ChannelClient;
use chorus_wire::cursor::Cursor;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: ChannelCommand,
}

/// A CHANNEL is its id (ch_…) or its name, if you are in only one channel with that name.
#[derive(Debug, clap::Subcommand)]
enum ChannelCommand {
    /// Create a channel; you own it
    Create {
        name: String,
        /// What the channel is about; sent with every delivery
        #[arg(long, value_name = "TEXT")]
        context: Option<String>,
        /// The service name that deliveries show; without it they show none
        #[arg(long, value_name = "TEXT")]
        service: Option<String>,
    },
    /// List the channels you are in, and your invitations
    List,
    /// Accept an invitation; from now on the channel's messages reach you
    Accept { channel: String },
    /// Decline an invitation
    Decline { channel: String },
    /// Show a channel and its members
    Show { channel: String },
    /// Change the name or the context
    Rename {
        channel: String,
        #[arg(required_unless_present = "context")]
        name: Option<String>,
        #[arg(long, value_name = "TEXT")]
        context: Option<String>,
    },
    /// Delete a channel with its whole history
    Delete {
        channel: String,
        /// Confirm the deletion
        #[arg(long)]
        yes: bool,
    },
    /// Add an agent: one of this hub by its name, any other by its connection string
    Add(Box<members::AddMemberArgs>),
    /// Remove a member, or leave; its callbacks and tools stop working at once
    Remove { channel: String, name: String },
    /// Create a persistent callback URL for a member; the previous one stops working at once
    Callback { channel: String, name: String },
    /// Post a message; - reads it from standard input
    Post {
        channel: String,
        #[arg(required = true)]
        text: Vec<String>,
        /// Structured content beside the text: a JSON array of A2A parts, or @FILE
        #[arg(long, value_name = "JSON", value_parser = read_parts)]
        parts: Option<PartsArg>,
    },
    /// Choose which messages are delivered to a member: all, or only those that mention it
    Deliver {
        channel: String,
        name: String,
        #[arg(value_parser = ["all", "mentions"])]
        mode: String,
    },
    /// Follow the history, live
    Tail(messages::TailArgs),
    /// Show the history
    History {
        channel: String,
        /// Only rows after this cursor
        #[arg(long, value_name = "CURSOR", value_parser = parse_cursor)]
        since: Option<Cursor>,
        /// At most this many rows: the latest, or with --since the first
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// List the artifacts and files, or print one artifact
    Artifacts {
        channel: String,
        slug: Option<String>,
        /// Print this version
        #[arg(long = "at", value_name = "VERSION", requires = "slug")]
        at: Option<u64>,
    },
    /// Create an artifact, or write its next version; the text is read from FILE, or from standard input for -
    Write(artifacts::WriteArgs),
    /// Fetch a file of the channel
    File(artifacts::FileArgs),
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let command = crate::command_client::CommandClient::open(common)?;
    let client = &command.client;
    match args.command {
        ChannelCommand::Create {
            name,
            context,
            service,
        } => channels::create_channel(common, client, &name, service, context).await,
        ChannelCommand::List => channels::list_channels(common, client).await,
        ChannelCommand::Accept { channel } => {
            invitations::accept_invitation(common, client, &channel).await
        }
        ChannelCommand::Decline { channel } => {
            invitations::decline_invitation(common, client, &channel).await
        }
        ChannelCommand::Show { channel } => channels::show_channel(common, client, &channel).await,
        ChannelCommand::Rename {
            channel,
            name,
            context,
        } => channels::rename_channel(common, client, &channel, name, context).await,
        ChannelCommand::Delete { channel, yes } => {
            channels::delete_channel(common, client, &channel, yes).await
        }
        ChannelCommand::Add(add) => members::add_member(common, client, *add).await,
        ChannelCommand::Remove { channel, name } => {
            members::remove_member(common, client, &channel, &name).await
        }
        ChannelCommand::Callback { channel, name } => {
            members::create_callback(common, client, &channel, &name).await
        }
        ChannelCommand::Post {
            channel,
            text,
            parts,
        } => messages::post_message(common, client, &channel, &text, parts.as_ref()).await,
        ChannelCommand::Deliver {
            channel,
            name,
            mode,
        } => members::set_delivery_mode(common, client, &channel, &name, &mode).await,
        ChannelCommand::Tail(tail) => messages::tail_channel(common, client, tail).await,
        ChannelCommand::History {
            channel,
            since,
            limit,
        } => messages::print_history(common, client, &channel, since, limit).await,
        ChannelCommand::Artifacts { channel, slug, at } => {
            artifacts::show_artifacts(common, client, &channel, slug.as_deref(), at).await
        }
        ChannelCommand::Write(write) => artifacts::write_artifact(common, client, write).await,
        ChannelCommand::File(file) => artifacts::fetch_file(common, client, file).await,
    }
}

fn parse_cursor(text: &str) -> Result<Cursor, String> {
    text.parse().map_err(|e: chorus_wire::Error| e.message)
}

/// Finds a channel by id or name.
async fn find_channel(client: &HubClient, id_or_name: &str) -> Result<ChannelClient, Fail> {
    if id_or_name.starts_with("ch_") {
        return Ok(client.channel(id_or_name));
    }
    let channels = client.list_channels().await?;
    let mut matching = channels.iter().filter(|channel| channel.name == id_or_name);
    match (matching.next(), matching.next()) {
        (Some(channel), None) => Ok(client.channel(&channel.id)),
        (None, _) => Err(Fail::usage_error(format!(
            "you are in no channel called {id_or_name}; chorus channel list shows them"
        ))),
        (Some(_), Some(_)) => Err(Fail::usage_error(format!(
            "you are in several channels called {id_or_name}; name one by its id"
        ))),
    }
}
