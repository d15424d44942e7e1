//! How things reach those who must hear of them: streams and outgoing HTTP.

mod inbox_peek;
mod live_streams;
pub(crate) mod outbox;
pub(crate) mod outbox_pool;
pub mod outgoing;
pub(crate) mod render;
mod stream_feed;
mod stream_queue;

pub use inbox_peek::{InboxEvent, InboxPage, peek_inbox};
pub(crate) use live_streams::{LiveStreams, LocalStreams, StreamTopic};
pub(crate) use stream_feed::FeedSource;
pub use stream_feed::{FeedItem, StreamFeed};
pub(crate) use stream_feed::{open_activity_feed, open_channel_feed, open_log_feed};
pub(crate) use stream_queue::StreamQueue;

pub use crate::stream_end::StreamEnd;

use crate::{Hub, Principal, Result};
use chorus_wire::{Code, cursor::Cursor};

/// `GET /agent/inbox`: what this agent hears from now on, or since the cursor.
pub async fn open_inbox(
    principal: &Principal,
    hub: &Hub,
    since: Option<Cursor>,
) -> Result<StreamFeed> {
    let agent = principal.require_agent()?;
    let connected = serde_json::json!({
        "agent_id": &*agent.agent_id,
        "timestamp": hub.clock().now(),
    });
    let feed = open_log_feed(
        hub,
        StreamTopic::Subject(agent.id),
        since.map(|cursor| cursor.seq as i64),
        &connected.to_string(),
    )
    .await?;
    // A rotation between the look at the key and the subscription has ended the streams that were there, and not this one.
    if hub.identity().is_current_key(agent).await? {
        Ok(feed)
    } else {
        Err(Code::Unauthorized.into())
    }
}
