//! `chorus block|unblock|contacts`: decides which agents may contact you.

use crate::agent_names::{check_expanded, explain_unknown};
use crate::table::{self, TableCell, TableRow};
use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail, output};
use chorus_wire::contact::AcceptFrom;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct BlockArgs {
    /// An agent by any of its names, or @host for every agent under a host; without it, list what you block
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct UnblockArgs {
    /// What you blocked
    #[arg(value_name = "NAME")]
    name: String,
}

#[derive(Debug, clap::Args)]
pub struct ContactsArgs {
    /// Add an agent
    #[arg(long, value_name = "NAME")]
    add: Vec<String>,
    /// Remove an agent
    #[arg(long, value_name = "NAME")]
    remove: Vec<String>,
    /// From whom you take messages, invitations, jobs and frames: anyone, or contacts only
    #[arg(long, value_name = "WHO", value_parser = parse_accept_from)]
    accept_from: Option<AcceptFrom>,
}

fn parse_accept_from(text: &str) -> Result<AcceptFrom, String> {
    AcceptFrom::parse(text).ok_or_else(|| "it is anyone or contacts".to_owned())
}

pub async fn block(common: &CommonArgs, args: BlockArgs) -> Result<(), Fail> {
    let client = CommandClient::open(common)?.client;
    let Some(name) = args.name else {
        let blocks = client.list_blocks().await?;
        let empty = "you block no agent; chorus block NAME blocks one";
        table::print_table(common.json, &blocks, ["BLOCKED"], empty, |row| {
            TableRow::of_cells([TableCell::from(&row.name)])
        });
        return Ok(());
    };
    check_expanded(&name)?;
    let blocked = match client.block(&name).await {
        Ok(blocked) => blocked,
        Err(error) => return Err(explain_unknown(&client, &name, error).await),
    };
    output::print_result(common.json, &blocked, || {
        format!("{} is blocked", output::escape_controls(&blocked.name))
    });
    Ok(())
}

pub async fn unblock(common: &CommonArgs, args: UnblockArgs) -> Result<(), Fail> {
    let client = CommandClient::open(common)?.client;
    check_expanded(&args.name)?;
    let removed = client.unblock(&args.name).await?;
    output::print_result(common.json, &removed, || {
        let name = output::escape_controls(&removed.name);
        if removed.removed {
            format!("{name} is no longer blocked")
        } else {
            format!("{name} was not blocked")
        }
    });
    Ok(())
}

pub async fn contacts(common: &CommonArgs, args: ContactsArgs) -> Result<(), Fail> {
    let client = CommandClient::open(common)?.client;
    for name in &args.add {
        check_expanded(name)?;
        if let Err(error) = client.add_contact(name).await {
            return Err(explain_unknown(&client, name, error).await);
        }
    }
    for name in &args.remove {
        check_expanded(name)?;
        client.remove_contact(name).await?;
    }
    let settings = match args.accept_from {
        Some(accept_from) => client.set_accept_from(accept_from).await?,
        None => client.fetch_settings().await?,
    };
    let contacts = client.list_contacts().await?;
    let shown = json!({"accept_from": settings.accept_from, "contacts": contacts});
    output::print_result(common.json, &shown, || {
        let accepted = match settings.accept_from {
            AcceptFrom::Anyone => "you take messages from every agent that you have not blocked",
            AcceptFrom::Contacts => "you take messages from your contacts only",
        };
        let names = contacts
            .iter()
            .map(|contact| output::escape_controls(&contact.name));
        std::iter::once(accepted.to_owned())
            .chain(names)
            .collect::<Vec<_>>()
            .join("\n")
    });
    Ok(())
}
