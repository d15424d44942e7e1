//! How things reach those who must hear of them: streams and outgoing HTTP.

mod feed;
pub mod outgoing;
mod queue;
pub(crate) mod render;

pub(crate) use feed::open;
pub use feed::{Feed, Next};
pub use queue::Ending;
pub(crate) use queue::Queue;

use crate::{Hub, Principal, Result, bus::Topic};
use chorus_wire::cursor::Cursor;

/// `GET /agent/inbox`: what this agent hears from now on, or since the cursor.
pub async fn inbox(who: &Principal, hub: &Hub, since: Option<Cursor>) -> Result<Feed> {
    let agent = who.agent()?;
    let connected = serde_json::json!({
        "agent_id": &*agent.agent_id,
        "timestamp": hub.clock().now(),
    });
    open(hub, Topic::Subject(agent.id), since.map(|cursor| cursor.seq as i64), &connected.to_string()).await
}
