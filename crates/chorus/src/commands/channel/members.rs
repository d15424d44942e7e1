//! Who comes into a room and who goes.

use super::{find, show};
use crate::commands::secret;
use crate::{cli::Common, fail::Fail, out};
use chorus_client::Client;
use chorus_client::channel::Guest;
use chorus_wire::secret::Secret;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Add {
    channel: String,
    /// An agent of this hub by its name; or - to read a connection string from standard input, or @FILE from a file
    who: String,
    /// What it is called in the room; needed with a connection string
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Only bring it what is said to it by name
    #[arg(long)]
    mentions: bool,
    /// Sign what is delivered to a connection string with this
    #[arg(
        long,
        value_name = "SECRET",
        env = "CHORUS_SIGNING_SECRET",
        hide_env_values = true
    )]
    signing_secret: Option<String>,
}

pub async fn add(common: &Common, client: &Client, args: Add) -> Result<(), Fail> {
    let guest = match secret::url(&args.who)? {
        Some(url) => {
            let name = args
                .name
                .ok_or_else(|| Fail::usage("what is it called in the room? say --name NAME"))?;
            Guest::Connection {
                url,
                name,
                signing_secret: args.signing_secret.map(Secret::new),
            }
        }
        None => Guest::Agent {
            agent_id: args.who,
            name: args.name,
        },
    };
    let deliver = if args.mentions { "mentions" } else { "all" };
    let member = find(client, &args.channel)
        .await?
        .add(&guest, deliver)
        .await?;
    out::say(common.json, &member, || show::member(&member));
    Ok(())
}

pub async fn remove(
    common: &Common,
    client: &Client,
    channel: &str,
    name: &str,
) -> Result<(), Fail> {
    let removed = find(client, channel).await?.remove(name).await?;
    out::say(common.json, &removed, || {
        format!(
            "{} is out of the room",
            out::harmless(removed.name.as_str())
        )
    });
    Ok(())
}

/// shown once, and only because it was asked for.
pub async fn callback(
    common: &Common,
    client: &Client,
    channel: &str,
    name: &str,
) -> Result<(), Fail> {
    let standing = find(client, channel).await?.callback(name).await?;
    let url = standing.callback.expose();
    out::say(common.json, &json!({ "callback": url }), || url.to_owned());
    Ok(())
}
