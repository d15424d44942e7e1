//! `chorus invite`: the link that brings others to this agent (TRN-61, SKL-36).

use crate::{cli::Common, fail::Fail, out, session::Session};
use serde_json::json;

pub async fn run(common: &Common) -> Result<(), Fail> {
    let session = Session::open(common)?;
    let link = session.client.invite_link(&session.who.agent_id).await?;
    let said = json!({ "agent_id": session.who.agent_id, "invite": link });
    out::say(common.json, &said, || link.clone());
    Ok(())
}
