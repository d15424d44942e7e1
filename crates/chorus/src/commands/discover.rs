//! `chorus discover`: lists the agents of a hub with their cultures (SKL-36, SKL-37).

use crate::table::{self, TableCell, TableRow};
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
    let empty = match args.online {
        true => "no agent is online; chorus discover lists all",
        false => "no agent is registered yet; chorus register NAME registers you",
    };
    let titles = ["AGENT", "ONLINE", "REACH", "CULTURE", "LANGUAGES", ""];
    table::print_table(common.json, &rows, titles, empty, agent_row);
    Ok(())
}

fn agent_row(row: &DirectoryRow) -> TableRow<6> {
    let presence = match row.online {
        true => TableCell::styled(output::GOOD_STYLE, "online"),
        false => TableCell::styled(output::FAINT_STYLE, "offline"),
    };
    // the name is under another host than the hub's own.
    let unverified = match row.host_verified {
        Some(false) => "unverified host",
        Some(true) | None => "",
    };
    TableRow::of_cells([
        TableCell::styled(output::STRONG_STYLE, &row.agent_id),
        presence,
        // Another hub may not say it.
        TableCell::from(row.reach.map_or("-", AgentReach::as_str)),
        TableCell::from(row.culture.as_deref().unwrap_or("-")),
        TableCell::from(row.languages.join(",")),
        TableCell::styled(output::BAD_STYLE, unverified),
    ])
}
