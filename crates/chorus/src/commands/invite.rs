//! `chorus invite`: prints the invite link of this agent (TRN-61, SKL-36).

use crate::{cli::CommonArgs, fail::Fail, output, session::ClientSession};
use serde_json::json;

pub async fn run(common: &CommonArgs) -> Result<(), Fail> {
    let session = ClientSession::open(common)?;
    let link = session
        .client
        .build_invite_link(&session.credentials.agent_id)
        .await?;
    let output = json!({ "agent_id": session.credentials.agent_id, "invite": link });
    output::print_result(common.json, &output, || link.clone());
    Ok(())
}
