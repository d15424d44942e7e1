//! `chorus channel`: shared rooms, a file per kind of verb.

mod artifacts;
mod channels;
mod format;
mod members;
mod messages;

pub use messages::read_text;

use crate::{cli::CommonArgs, fail::Fail};
use chorus_client::HubClient;
use chorus_client::channel::ChannelClient;
use chorus_wire::cursor::Cursor;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: ChannelCommand,
}

/// A CHANNEL is its id (ch_…) or, when no other of yours is called the same, its name.
#[derive(Debug, clap::Subcommand)]
enum ChannelCommand {
    /// Make a room; you own it
    Create {
        name: String,
        /// What it is about: it goes with every delivery
        #[arg(long, value_name = "TEXT")]
        context: Option<String>,
        /// What the platform calls itself to the agents; otherwise the hub's own name
        #[arg(long, value_name = "TEXT")]
        service: Option<String>,
    },
    /// List the rooms you are in
    List,
    /// Show a room and who is in it
    Show { channel: String },
    /// Give it another name, or say anew what it is about
    Rename {
        channel: String,
        #[arg(required_unless_present = "context")]
        name: Option<String>,
        #[arg(long, value_name = "TEXT")]
        context: Option<String>,
    },
    /// Close a room for good, with everything that was said in it
    Delete {
        channel: String,
        /// You mean it
        #[arg(long)]
        yes: bool,
    },
    /// Bring an agent in: one of this hub by its name, any other by its connection string
    Add(Box<members::AddMemberArgs>),
    /// Put a member out, or leave; its callbacks and tools stop working at once
    Remove { channel: String, name: String },
    /// Print a URL by which a member speaks without being asked; the one before stops working at once
    Callback { channel: String, name: String },
    /// Say something; - reads it from standard input
    Post {
        channel: String,
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Follow what is said and done, live
    Tail(messages::TailArgs),
    /// Show what was said and done
    History {
        channel: String,
        /// Only what came after this cursor
        #[arg(long, value_name = "CURSOR", value_parser = parse_cursor)]
        since: Option<Cursor>,
        /// At most this many lines; the last ones, or with --since the first
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
    },
    /// List what the room has written down, or print one
    Artifacts {
        channel: String,
        slug: Option<String>,
        /// An older version of it
        #[arg(long = "at", value_name = "VERSION", requires = "slug")]
        at: Option<u64>,
    },
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let client = crate::session::ClientSession::open(common)?.client;
    match args.verb {
        ChannelCommand::Create {
            name,
            context,
            service,
        } => {
            channels::create_channel(
                common,
                &client,
                &name,
                service.as_deref(),
                context.as_deref(),
            )
            .await
        }
        ChannelCommand::List => channels::list_channels(common, &client).await,
        ChannelCommand::Show { channel } => channels::show_channel(common, &client, &channel).await,
        ChannelCommand::Rename {
            channel,
            name,
            context,
        } => {
            channels::rename_channel(
                common,
                &client,
                &channel,
                name.as_deref(),
                context.as_deref(),
            )
            .await
        }
        ChannelCommand::Delete { channel, yes } => {
            channels::delete_channel(common, &client, &channel, yes).await
        }
        ChannelCommand::Add(add) => members::add_member(common, &client, *add).await,
        ChannelCommand::Remove { channel, name } => {
            members::remove_member(common, &client, &channel, &name).await
        }
        ChannelCommand::Callback { channel, name } => {
            members::create_callback(common, &client, &channel, &name).await
        }
        ChannelCommand::Post { channel, text } => {
            messages::post_message(common, &client, &channel, &text).await
        }
        ChannelCommand::Tail(tail) => messages::tail_channel(common, &client, tail).await,
        ChannelCommand::History {
            channel,
            since,
            limit,
        } => messages::print_history(common, &client, &channel, since, limit).await,
        ChannelCommand::Artifacts { channel, slug, at } => {
            artifacts::show_artifacts(common, &client, &channel, slug.as_deref(), at).await
        }
    }
}

fn parse_cursor(text: &str) -> Result<Cursor, String> {
    text.parse().map_err(|e: chorus_wire::Error| e.message)
}

/// The room of this id or name.
async fn find_channel(client: &HubClient, named: &str) -> Result<ChannelClient, Fail> {
    if named.starts_with("ch_") {
        return Ok(client.channel(named));
    }
    let channels = client.list_channels().await?;
    let mut matching = channels.iter().filter(|channel| channel.name == named);
    match (matching.next(), matching.next()) {
        (Some(channel), None) => Ok(client.channel(&channel.id)),
        (None, _) => Err(Fail::usage_error(format!(
            "you are in no channel called {named}; chorus channel list shows them"
        ))),
        (Some(_), Some(_)) => Err(Fail::usage_error(format!(
            "you are in several channels called {named}; name one by its id"
        ))),
    }
}
