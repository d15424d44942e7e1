//! What was said and done in a room, page by page and live: the same lines from the same log.

use super::rooms::{enter, seat};
use crate::delivery::{Feed, open_room, render};
use crate::store::{Entry, channels, log};
use crate::{Hub, Principal, Result};
use chorus_wire::{Code, Error, cursor::Cursor, limits};
use serde_json::value::RawValue;

/// Which lines are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// From the first one after this place on.
    After(u64),
    /// The last ones before this place.
    Before(u64),
    /// The last messages before this place, and nothing else.
    SaidBefore(u64),
}

/// `GET /channels/{id}/messages`: everything, oldest first.
pub async fn history(
    who: &Principal,
    hub: &Hub,
    id: &str,
    lines: Lines,
    limit: usize,
) -> Result<Vec<Box<RawValue>>> {
    let room = enter(who, hub, id).await?.room.id;
    of(hub, room, lines, limit).await
}

/// The same for whoever is in the room by other means than a key.
pub(crate) async fn of(
    hub: &Hub,
    room: i64,
    lines: Lines,
    limit: usize,
) -> Result<Vec<Box<RawValue>>> {
    let limit = limit.clamp(1, limits::HISTORY_PAGE);
    let indexed = hub.store().indexed();
    let place = |seq: u64| i64::try_from(seq).unwrap_or(i64::MAX);
    let entries = hub
        .store()
        .read(async move |tx| {
            let page = match lines {
                Lines::After(seq) => log::heard(tx, room, place(seq), indexed, limit).await?,
                Lines::Before(seq) => {
                    channels::before(tx, room, place(seq), indexed, false, limit).await?
                }
                Lines::SaidBefore(seq) => {
                    channels::before(tx, room, place(seq), indexed, true, limit).await?
                }
            };
            Ok(page.entries)
        })
        .await?;
    entries.iter().map(raw).collect()
}

fn raw(entry: &Entry) -> Result<Box<RawValue>> {
    RawValue::from_string(render::line(entry)).map_err(Error::internal)
}

/// `GET /channels/{id}/stream`: what is said and done from now on, or since the cursor.
pub async fn stream(who: &Principal, hub: &Hub, id: &str, since: Option<Cursor>) -> Result<Feed> {
    let place = enter(who, hub, id).await?;
    let connected = serde_json::json!({
        "channel_id": &*place.room.public_id,
        "name": place.room.name,
        "as": &*place.speaker().name,
        "timestamp": hub.clock().now(),
    });
    let member = place.member.as_ref().map(|member| member.id);
    let since = since.map(|cursor| cursor.seq as i64);
    let feed = open_room(hub, place.room.id, member, since, &connected.to_string()).await?;
    // A removal, a deletion or a rotation between the look and the subscription has ended the streams that were there, and not
    // this one.
    let (asking, id) = (who.clone(), id.to_owned());
    let now = hub
        .store()
        .read(async move |tx| seat(tx, &asking, &id).await)
        .await?;
    let same = now.member.map(|member| member.id) == member;
    let current = match who {
        Principal::Agent(agent) => hub.keyring().is_current(hub, agent).await?,
        Principal::Operator(_) | Principal::Anyone => true,
    };
    match (same, current) {
        (true, true) => Ok(feed),
        (false, true) => Err(Code::NotFound.into()),
        (true | false, false) => Err(Code::Unauthorized.into()),
    }
}
