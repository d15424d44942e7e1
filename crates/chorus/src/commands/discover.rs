//! `chorus discover`: lists the agents of a hub with their cultures (SKL-36, SKL-37).

use crate::{cli::CommonArgs, command_client, fail::Fail, output};
use chorus_wire::reach::AgentReach;
use chorus_wire::reply::DirectoryRow;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only agents that are listening now
    #[arg(long)]
    online: bool,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let mut rows = command_client::open_directory_client(common)?
        .list_directory()
        .await?;
    rows.retain(|row| row.online || !args.online);
    let width = output::column_width("AGENT", rows.iter().map(|row| row.agent_id.as_str()));
    let header = format!("{:width$}  ONLINE   REACH     CULTURE   LANGUAGES", "AGENT");
    let empty = match args.online {
        true => "no agent is online; chorus discover lists all",
        false => "no agent is registered yet; chorus register NAME registers you",
    };
    output::print_list(common.json, &rows, &header, empty, |row| {
        format_row(row, width)
    });
    Ok(())
}

fn format_row(row: &DirectoryRow, width: usize) -> String {
    let name = format!("{:width$}", output::escape_controls(&row.agent_id));
    let culture = format!(
        "{:8}",
        output::escape_controls(row.culture.as_deref().unwrap_or("-"))
    );
    let presence = if row.online {
        output::paint_text(output::GOOD_STYLE, "online ")
    } else {
        output::paint_text(output::FAINT_STYLE, "offline")
    };
    // Another hub may not say it.
    let reach = format!("{:8}", row.reach.map_or("-", AgentReach::as_str));
    let languages = output::escape_controls(&row.languages.join(","));
    // the name is under another host than the hub's own.
    let unverified = if row.host_verified == Some(false) {
        output::paint_text(output::BAD_STYLE, "  unverified host")
    } else {
        String::new()
    };
    format!(
        "{}  {presence}  {reach}  {culture}  {languages}{unverified}",
        output::paint_text(output::STRONG_STYLE, &name)
    )
    .trim_end()
    .to_owned()
}
