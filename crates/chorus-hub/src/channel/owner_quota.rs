//! The quotas of a channel's owner: its channels, their members, their artifacts and files.

use crate::Result;
use crate::context::HubContext;
use crate::store::channels::ChannelRecord;
use crate::store::{AgentId, WriteTxn, owner_usage};
use chorus_wire::usage::QuotaName;

/// Refuses another channel, member or artifact of the channels of this agent's owner, if it is beyond the quota. The channels of
/// operators have no owner and no quota.
pub(super) async fn check_owner_quota(
    txn: &WriteTxn<'_>,
    channel_owner: Option<AgentId>,
    name: QuotaName,
) -> Result<()> {
    let owner = match channel_owner {
        Some(agent) => owner_usage::find_agent_owner(&txn.tx, agent).await?,
        None => None,
    };
    let Some(owner) = owner else {
        return Ok(());
    };
    let used = match name {
        QuotaName::Channels => owner_usage::count_owner_channels(&txn.tx, owner).await?,
        QuotaName::Members => owner_usage::count_owner_members(&txn.tx, owner).await?,
        QuotaName::Artifacts => owner_usage::count_owner_artifacts(&txn.tx, owner).await?,
        QuotaName::OpenJobs => owner_usage::count_open_jobs(&txn.tx, owner).await?,
        QuotaName::StoredBytes => owner_usage::sum_stored_bytes(&txn.tx, owner).await?,
    };
    txn.hub_settings().quotas.check(name, used + 1)
}

/// Counts an artifact or a file of this many octets for the channel's owner, or refuses it.
pub(super) async fn charge_channel_content(
    hub: &HubContext,
    channel: &ChannelRecord,
    octets: usize,
) -> Result<()> {
    let Some(agent) = channel.owner else {
        return Ok(());
    };
    let owner = hub
        .store()
        .read(async move |tx| Ok(owner_usage::find_agent_owner(tx, agent).await?))
        .await?;
    match owner {
        Some(owner) => hub.identity().charge_stored_bytes(owner, octets).await,
        None => Ok(()),
    }
}
