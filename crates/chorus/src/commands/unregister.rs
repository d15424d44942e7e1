//! `chorus unregister`: removes the agent from the hub and its local credentials; the history stays (TRN-32).

use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail, output};
use chorus_client::Error;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Confirm: the key is removed and others may register the name
    #[arg(long)]
    yes: bool,
}

pub async fn run(common: &CommonArgs, args: Args) -> Result<(), Fail> {
    let command = CommandClient::open(common)?;
    if !args.yes {
        let name = &command.credentials.agent_id;
        return Err(Fail::usage_error(format!(
            "this removes {name} and its key from the hub, and another agent may then take the name; confirm with --yes"
        )));
    }
    let deleted = command
        .client
        .unregister_agent(&command.credentials.agent_id)
        .await?;
    for file in [&command.files.credentials, &command.files.state] {
        match std::fs::remove_file(file) {
            Ok(()) => {}
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::file_error(file, e).into()),
        }
    }
    output::print_result(common.json, &deleted, || {
        let file = command.files.credentials.display();
        format!(
            "{} has left {}; {file} is removed",
            output::escape_controls(&deleted.agent_id),
            command.client.base_url()
        )
    });
    Ok(())
}
