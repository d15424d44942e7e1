//! Operations that touch several protocols: registering, rotating a key, unregistering, and listing agents with their presence.

mod admission;
mod console_sessions;
pub mod contact;
mod directory;
mod endpoint_secret;
mod fill_skeletons;
mod keys;
mod owner;
mod register;
mod rotate;
mod unregister;

pub(crate) use console_sessions::end_expired_sessions;
pub use console_sessions::{end_console_session, open_console_session};
pub use directory::{
    DirectoryPage, get_agent_record, get_invite_card, list_agent_records, list_directory,
};
pub use endpoint_secret::create_endpoint_secret;
pub(crate) use fill_skeletons::fill_name_skeletons;
pub(crate) use keys::end_expired_keys;
pub use keys::{create_key, list_keys, revoke_key, rotate_key};
pub use register::{register_agent, register_on_behalf};
pub use unregister::unregister_agent;

use crate::Result;
use crate::context::HubContext;
use crate::frame::Frames;
use crate::store::{AgentId, MemberId, WriteTxn, channels};
use crate::stream_end::StreamEnd;

/// Ends every stream of an agent on this hub: its inbox streams and its frame sessions.
fn end_agent_streams(hub: &HubContext, frames: &Frames, agent: AgentId, reason: StreamEnd) {
    hub.live_streams().end_streams(agent.into(), reason);
    frames.end_streams(agent, reason);
}

/// The agent's memberships of channels; each is a subject of its own whose streams can be ended.
async fn list_member_ids(txn: &WriteTxn<'_>, agent: AgentId) -> Result<Vec<MemberId>> {
    let memberships = channels::list_memberships(&txn.tx, agent).await?;
    Ok(memberships.iter().map(|member| member.id).collect())
}
