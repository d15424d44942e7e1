//! `chorus channel add|deliver|remove|callback`: manages the members of a channel.

use super::{find_channel, format};
use crate::agent_names;
use crate::commands::secret_url;
use crate::{cli::CommonArgs, fail::Fail, output};
use chorus_client::HubClient;
use chorus_client::channel::NewMember;
use chorus_wire::secret::Secret;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct AddMemberArgs {
    channel: String,
    /// An agent of this hub by its name; or - to read a connection string from standard input, or @FILE from a file
    #[arg(value_name = "WHO")]
    member: String,
    /// Its name in the channel; required with a connection string
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Deliver only messages that mention it
    #[arg(long)]
    mentions: bool,
    /// Sign deliveries to a connection string with this secret
    #[arg(
        long,
        value_name = "SECRET",
        env = "CHORUS_SIGNING_SECRET",
        hide_env_values = true
    )]
    signing_secret: Option<String>,
}

pub async fn add_member(
    common: &CommonArgs,
    client: &HubClient,
    args: AddMemberArgs,
) -> Result<(), Fail> {
    let new_member = match secret_url::read_url(&args.member)? {
        Some(url) => {
            let name = args.name.ok_or_else(|| {
                Fail::usage_error("what is it called in the channel? say --name NAME")
            })?;
            NewMember::Connection {
                url,
                name,
                signing_secret: args.signing_secret.map(Secret::new),
            }
        }
        None => NewMember::Agent {
            agent_id: agent_names::resolve_agent(client, &args.member).await?,
            name: args.name,
        },
    };
    let deliver = if args.mentions { "mentions" } else { "all" };
    let member = find_channel(client, &args.channel)
        .await?
        .add_member(&new_member, deliver)
        .await?;
    output::print_result(common.json, &member, || format::format_member(&member));
    Ok(())
}

pub async fn remove_member(
    common: &CommonArgs,
    client: &HubClient,
    channel: &str,
    name: &str,
) -> Result<(), Fail> {
    let removed = find_channel(client, channel)
        .await?
        .remove_member(name)
        .await?;
    output::print_result(common.json, &removed, || {
        format!(
            "{} is no longer in the channel",
            output::escape_controls(removed.name.as_str())
        )
    });
    Ok(())
}

pub async fn set_delivery_mode(
    common: &CommonArgs,
    client: &HubClient,
    channel: &str,
    name: &str,
    mode: &str,
) -> Result<(), Fail> {
    let member = find_channel(client, channel)
        .await?
        .set_delivery_mode(name, mode)
        .await?;
    output::print_result(common.json, &member, || format::format_member(&member));
    Ok(())
}

/// Creates a persistent callback and prints its URL. The URL is shown only here.
pub async fn create_callback(
    common: &CommonArgs,
    client: &HubClient,
    channel: &str,
    name: &str,
) -> Result<(), Fail> {
    let persistent = find_channel(client, channel)
        .await?
        .create_persistent_callback(name)
        .await?;
    let url = persistent.callback.expose();
    output::print_result(common.json, &json!({ "callback": url }), || url.to_owned());
    Ok(())
}
