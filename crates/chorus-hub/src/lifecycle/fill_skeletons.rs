//! Fills the skeletons of names that were registered before there were any.

use crate::Result;
use crate::context::HubContext;
use crate::identity::name_skeleton;
use crate::store::name_skeletons;
use chorus_wire::identity::AgentName;

/// Max names that one write fills, so that other hubs' writes do not wait long.
const NAMES_PER_WRITE: usize = 1_000;

/// Runs when the hub starts; once all are filled, it costs one query. A name without a host gets an empty skeleton.
pub(crate) async fn fill_name_skeletons(hub: &HubContext) -> Result<()> {
    loop {
        let host = hub.options().host_name.clone();
        let filled = hub
            .store()
            .write(async move |txn| {
                let rows =
                    name_skeletons::list_agents_without_skeleton(&txn.tx, NAMES_PER_WRITE).await?;
                for (id, agent_id) in &rows {
                    let skeleton = AgentName::parse("agent_id", agent_id)
                        .ok()
                        .and_then(|name| name_skeleton(&name, &host))
                        .unwrap_or_default();
                    name_skeletons::set_skeleton(&txn.tx, *id, &skeleton).await?;
                }
                Ok(rows.len())
            })
            .await?;
        if filled < NAMES_PER_WRITE {
            return Ok(());
        }
    }
}
