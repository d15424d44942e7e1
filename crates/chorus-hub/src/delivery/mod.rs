//! How things reach those who must hear of them: streams and outgoing HTTP.

mod feed;
pub(crate) mod outbox;
pub mod outgoing;
mod peek;
pub(crate) mod pool;
mod queue;
pub(crate) mod render;

pub use feed::{Feed, Next};
pub(crate) use feed::{open, open_activity, open_room};
pub use peek::{Peeked, Waiting, peek};
pub use queue::Ending;
pub(crate) use queue::Queue;

use crate::{Hub, Principal, Result, bus::Topic};
use chorus_wire::{Code, cursor::Cursor};

/// `GET /agent/inbox`: what this agent hears from now on, or since the cursor.
pub async fn inbox(who: &Principal, hub: &Hub, since: Option<Cursor>) -> Result<Feed> {
    let agent = who.agent()?;
    let connected = serde_json::json!({
        "agent_id": &*agent.agent_id,
        "timestamp": hub.clock().now(),
    });
    let feed = open(
        hub,
        Topic::Subject(agent.id),
        since.map(|cursor| cursor.seq as i64),
        &connected.to_string(),
    )
    .await?;
    // A rotation between the look at the key and the subscription has ended the streams that were there, and not this one.
    if hub.keyring().is_current(hub, agent).await? {
        Ok(feed)
    } else {
        Err(Code::Unauthorized.into())
    }
}
