//! `chorus console`: opens the hub's page in a browser, signed in by a single-use link.

use super::browser::open_browser;
use super::register::parse_secret;
use crate::command_client::{self, CommandClient};
use crate::{cli::CommonArgs, fail::Fail, output};
use chorus_client::HubClient;
use chorus_wire::secret::Secret;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print the link instead of opening a browser. It signs in once, within five minutes
    #[arg(long)]
    print: bool,
    /// Sign in as the hub's operator
    #[arg(
        long,
        value_name = "KEY",
        env = "CHORUS_OPERATOR_KEY",
        hide_env_values = true,
        value_parser = parse_secret
    )]
    operator_key: Option<Secret>,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let is_operator = args.operator_key.is_some();
    let client = match args.operator_key {
        Some(key) => command_client::open_client(common, Some(key))?,
        None => CommandClient::open(common)?.client,
    };
    let (link, seconds) = create_link(&client)
        .await
        .map_err(|fail| match is_operator {
            true => fail.for_operator(),
            false => fail,
        })?;
    let is_opened = !args.print && !common.json && open_browser(&link);
    let output = json!({ "url": link, "expires_in_seconds": seconds });
    output::print_result(common.json, &output, || {
        let page = format!("{}/console", client.base_url());
        match (args.print, is_opened) {
            (true, _) => link.clone(),
            (false, true) => {
                format!("{page} is open in your browser. If it is not: chorus console --print")
            }
            (false, false) => format!(
                "No browser could be opened. Open this link; it signs you in once, within {} minutes:\n{link}",
                seconds / 60
            ),
        }
    });
    Ok(())
}

/// A link to the console, and the seconds for which it can be used.
async fn create_link(client: &HubClient) -> Result<(String, u64), Fail> {
    let created = client.create_console_link().await?;
    let link = format_link(client.base_url(), &created.link_token);
    Ok((link, created.expires_in_seconds))
}

/// The token is in the fragment, which browsers keep to themselves: it reaches no log of a hub or a proxy.
pub fn format_link(hub: &str, link_token: &Secret) -> String {
    let hub = hub.trim_end_matches('/');
    format!("{hub}/console#/link/{}", link_token.expose())
}
