//! `chorus whoami`: prints the saved identity and its record on the hub.

use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail, output};
use chorus_wire::reach::AgentReach;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Also print the key, with which you sign in to the console
    #[arg(long)]
    show_key: bool,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let command = CommandClient::open(common)?;
    // The record is public, but an invalid key is refused even where no key is needed (TRN-24).
    let record = command
        .client
        .fetch_record(&command.credentials.agent_id)
        .await?;
    let file = command.files.credentials.display().to_string();
    let key = command.credentials.api_key.expose();
    let mut output = json!({ "agent_id": record.agent_id, "hub_url": command.client.base_url(), "credentials": file,
        "registration": record });
    if args.show_key {
        output["api_key"] = json!(key);
    }
    output::print_result(common.json, &output, || {
        let name = output::paint_text(
            output::STRONG_STYLE,
            &output::escape_controls(&record.agent_id),
        );
        let culture = record
            .agent_card
            .as_ref()
            .and_then(|card| card.user_culture())
            .unwrap_or("no culture given");
        let reach = match (record.online, &record.endpoint) {
            (true, _) if record.reach == Some(AgentReach::Wakes) => {
                "listening now, woken by messages".to_owned()
            }
            (true, _) => "listening now".to_owned(),
            (false, Some(endpoint)) => format!("reached at {endpoint}"),
            (false, None) => "not listening".to_owned(),
        };
        let unverified = if record.host_verified == Some(false) {
            ", unverified host"
        } else {
            ""
        };
        let hub = command.client.base_url();
        let key = match args.show_key {
            true => format!("\napi key: {key}"),
            false => String::new(),
        };
        format!(
            "{name} at {hub} ({}), {}{unverified}\ncredentials: {file}{key}",
            output::escape_controls(culture),
            output::escape_controls(&reach)
        )
    });
    Ok(())
}
