//! What hubs that share a database say to one another. Nothing in it is the only copy of anything that lasts (law 4).

use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// A name for one life of one hub.
pub(crate) type HubId = u64;

/// Said to all hubs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Said {
    Here(Here),
    /// This hub is leaving: nothing more is to be expected of it.
    Gone(HubId),
    /// The log has grown up to this place.
    Grew(HubId, i64),
}

/// I am here, and this is what you should know of me.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Here {
    pub hub: HubId,
    /// How many subjects have a stream here, and a sum over them: whoever knows others asks again.
    pub subjects: usize,
    pub sum: u64,
}

/// Who listens at a hub: a subject, its streams, its frame sessions.
pub(super) type Place = (i64, u32, u32);

/// Asked of one hub.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Ask {
    /// What changed; the answer is that it is known now.
    News(News),
    /// Which of these places did streams of yours take? Answered once the log is known up to `upto`.
    Took { upto: i64, seqs: Vec<i64> },
    /// Who listens at your hub, after this subject?
    Places(HubId, i64),
    /// A question that a room of the hub answers.
    Room(Question),
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct News {
    pub hub: HubId,
    pub places: Vec<Place>,
    /// Agents that were heard, and how many microseconds ago; below zero when one refused a job.
    pub heard: Vec<(i64, i64)>,
}

/// What one room of a hub asks the same room of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Question {
    /// The sessions of this principal.
    Sessions(i64),
    /// How many sessions this sender's frame was for, once the tape is known up to this place.
    Reached { sender: i64, id: uuid::Uuid, place: u64 },
}

pub(super) fn pack<T: Serialize>(what: &T) -> Bytes {
    serde_json::to_vec(what).unwrap_or_default().into()
}

/// `None` for what a newer hub says and this one does not know.
pub(super) fn unpack<T: DeserializeOwned>(payload: &[u8]) -> Option<T> {
    serde_json::from_slice(payload).ok()
}
