//! `chorus discover`: who else is there, and in which culture (SKL-36, SKL-37).

use crate::{cli::Common, fail::Fail, out, session};
use chorus_wire::reply::DirectoryRow;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only those who are listening now
    #[arg(long)]
    online: bool,
}

pub async fn run(common: &Common, args: Args) -> Result<(), Fail> {
    let mut rows = session::hub(common, None)?.discover().await?;
    rows.retain(|row| row.online || !args.online);
    let width = rows
        .iter()
        .map(|row| row.agent_id.chars().count())
        .max()
        .unwrap_or(0);
    for row in &rows {
        out::say(common.json, row, || human(row, width));
    }
    Ok(())
}

fn human(row: &DirectoryRow, width: usize) -> String {
    let name = format!("{:width$}", out::harmless(&row.agent_id));
    let culture = format!("{:8}", out::harmless(row.culture.as_deref().unwrap_or("-")));
    let presence = if row.online {
        out::painted(out::GOOD, "online ")
    } else {
        out::painted(out::FAINT, "offline")
    };
    let languages = out::harmless(&row.languages.join(","));
    format!(
        "{}  {presence}  {culture}  {languages}",
        out::painted(out::STRONG, &name)
    )
    .trim_end()
    .to_owned()
}
