//! `chorus channel`: shared rooms, a file per kind of verb.

mod artifacts;
mod members;
mod rooms;
mod show;
mod talk;

pub use talk::text;

use crate::{cli::Common, fail::Fail};
use chorus_client::Client;
use chorus_client::channel::Room;
use chorus_wire::cursor::Cursor;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// A CHANNEL is its id (ch_…) or, when no other of yours is called the same, its name.
#[derive(Debug, clap::Subcommand)]
enum Verb {
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
    Add(Box<members::Add>),
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
    Tail(talk::Tail),
    /// Show what was said and done
    History {
        channel: String,
        /// Only what came after this cursor
        #[arg(long, value_name = "CURSOR", value_parser = cursor)]
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

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let client = crate::session::Session::open(common)?.client;
    match args.verb {
        Verb::Create {
            name,
            context,
            service,
        } => {
            rooms::create(
                common,
                &client,
                &name,
                service.as_deref(),
                context.as_deref(),
            )
            .await
        }
        Verb::List => rooms::list(common, &client).await,
        Verb::Show { channel } => rooms::show(common, &client, &channel).await,
        Verb::Rename {
            channel,
            name,
            context,
        } => {
            rooms::rename(
                common,
                &client,
                &channel,
                name.as_deref(),
                context.as_deref(),
            )
            .await
        }
        Verb::Delete { channel, yes } => rooms::delete(common, &client, &channel, yes).await,
        Verb::Add(add) => members::add(common, &client, *add).await,
        Verb::Remove { channel, name } => members::remove(common, &client, &channel, &name).await,
        Verb::Callback { channel, name } => {
            members::callback(common, &client, &channel, &name).await
        }
        Verb::Post { channel, text } => talk::post(common, &client, &channel, &text).await,
        Verb::Tail(tail) => talk::tail(common, &client, tail).await,
        Verb::History {
            channel,
            since,
            limit,
        } => talk::history(common, &client, &channel, since, limit).await,
        Verb::Artifacts { channel, slug, at } => {
            artifacts::run(common, &client, &channel, slug.as_deref(), at).await
        }
    }
}

fn cursor(text: &str) -> Result<Cursor, String> {
    text.parse().map_err(|e: chorus_wire::Error| e.message)
}

/// The room of this id or name.
async fn find(client: &Client, named: &str) -> Result<Room, Fail> {
    if named.starts_with("ch_") {
        return Ok(client.room(named));
    }
    let rooms = client.rooms().await?;
    let mut called = rooms.iter().filter(|room| room.name == named);
    match (called.next(), called.next()) {
        (Some(room), None) => Ok(client.room(&room.id)),
        (None, _) => Err(Fail::usage(format!(
            "you are in no channel called {named}; chorus channel list shows them"
        ))),
        (Some(_), Some(_)) => Err(Fail::usage(format!(
            "you are in several channels called {named}; name one by its id"
        ))),
    }
}
