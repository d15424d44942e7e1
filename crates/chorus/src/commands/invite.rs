//! `chorus invite`: prints the invite link of this agent (TRN-61, SKL-36).

use crate::{cli::CommonArgs, command_client::CommandClient, fail::Fail, output};
use serde_json::json;

pub async fn run(common: &CommonArgs) -> Result<(), Fail> {
    let command = CommandClient::open(common)?;
    let link = command
        .client
        .build_invite_link(&command.credentials.agent_id)
        .await?;
    let output = json!({ "agent_id": command.credentials.agent_id, "invite": link });
    output::print_result(common.json, &output, || link.clone());
    Ok(())
}
