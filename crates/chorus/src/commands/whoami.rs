//! `chorus whoami`: the saved identity, and what the hub says of it.

use crate::{cli::Common, fail::Fail, out, session::Session};
use serde_json::json;

pub async fn run(common: &Common) -> Result<(), Fail> {
    let session = Session::open(common)?;
    // The record is public, but a key that no longer holds is refused also where none is needed (TRN-24).
    let record = session.client.record(&session.who.agent_id).await?;
    let file = session.place.credentials.display().to_string();
    let said = json!({ "agent_id": record.agent_id, "hub_url": session.client.base(), "credentials": file,
        "registration": record });
    out::say(common.json, &said, || {
        let name = out::painted(out::STRONG, &out::harmless(&record.agent_id));
        let culture = record
            .agent_card
            .as_ref()
            .and_then(|card| card.culture())
            .unwrap_or("no culture given");
        let reach = match (record.online, &record.endpoint) {
            (true, _) => "listening now".to_owned(),
            (false, Some(endpoint)) => format!("reached at {endpoint}"),
            (false, None) => "not listening".to_owned(),
        };
        let hub = session.client.base();
        format!(
            "{name} at {hub} ({}), {}\ncredentials: {file}",
            out::harmless(culture),
            out::harmless(&reach)
        )
    });
    Ok(())
}
