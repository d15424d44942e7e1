//! What hubs that share a database say to one another. Nothing in it is the only copy of anything that lasts (law 4). Hubs of two
//! versions understand one another while one is replaced by the other: what is added has a default, and a question that a hub
//! does not know is answered at once with nothing (D-94).

use crate::identity::rate_limit::{BudgetClaim, CallerId};
use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// A name for one life of one hub.
pub(crate) type HubId = u64;

/// Said to all hubs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum PeerAnnouncement {
    Here(Heartbeat),
    /// This hub is leaving: nothing more is to be expected of it.
    Gone(HubId),
    /// The log has grown up to this place.
    Grew(HubId, i64),
    /// This hub decides about these callers, and this is what they owe, in nanoseconds.
    Spent(HubId, Vec<(CallerId, u64)>),
}

/// I am here, and this is what you should know of me.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Heartbeat {
    pub hub: HubId,
    /// How many subjects have a stream here, and a sum over them, as it was with the news of this number: whoever knows others
    /// asks again.
    pub subjects: usize,
    pub sum: u64,
    pub news: u64,
}

/// Who listens at a hub: a subject, its streams, its frame sessions.
pub(super) type SubjectPresence = (i64, u32, u32);

/// Asked of one hub.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum PeerRequest {
    /// What changed; the answer is that it is known now.
    News(PresenceDelta),
    /// Which of these places did streams of yours take? Answered once the log is known up to `upto`.
    Took { upto: i64, seqs: Vec<i64> },
    /// Who listens at your hub, after this subject? A [`Page`] of them.
    Places(HubId, i64),
    /// What callers have spent, and whether they may once more; a [`Verdict`] each.
    Spend(Vec<BudgetClaim>),
    /// Which agents has your hub heard, or been refused by, after this one? As in [`News`].
    Heard(i64),
    /// What must be the same at all hubs, as your hub has it? An [`Alike`].
    Alike,
    /// A question that a room of the hub answers.
    Room(FrameQuery),
}

/// What must be the same at all hubs of a database, or what one writes another cannot read (D-87).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SharedSettings {
    pub host_name: String,
    /// A mark of the key that seals, which tells nothing else of it.
    pub seal: u64,
}

impl SharedSettings {
    /// The setting in which the two differ.
    pub(super) fn find_difference(&self, other: &Self) -> Option<&'static str> {
        if self.seal != other.seal {
            return Some("--seal-key-file");
        }
        (self.host_name != other.host_name).then_some("--host-name")
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PresenceDelta {
    pub hub: HubId,
    /// One more than the last; none for a mere question whether somebody answers.
    pub number: u64,
    pub places: Vec<SubjectPresence>,
    pub heard: Vec<AgentSeen>,
}

/// An agent that was heard, and how many microseconds ago; below zero when it refused a job.
pub(super) type AgentSeen = (i64, i64);

/// Some of who listens at a hub, after the news of this number. One that is not full is the last.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PresencePage {
    pub news: u64,
    pub places: Vec<SubjectPresence>,
}

/// What one room of a hub asks the same room of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FrameQuery {
    /// The sessions of this principal after this one, in the order of a roster; as many as fit in one piece.
    Sessions {
        principal: i64,
        after: Option<(i64, String, String)>,
    },
    /// How many sessions this sender's frame was for: once it is taken, or the memory of this epoch is known up to this place.
    Reached {
        sender: i64,
        id: uuid::Uuid,
        epoch: u64,
        place: u64,
    },
}

pub(super) fn encode_message<T: Serialize>(message: &T) -> Bytes {
    serde_json::to_vec(message).unwrap_or_default().into()
}

/// `None` for what a newer hub says and this one does not know.
pub(super) fn decode_message<T: DeserializeOwned>(payload: &[u8]) -> Option<T> {
    serde_json::from_slice(payload).ok()
}
