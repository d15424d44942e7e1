//! The messages between hubs of a cluster. None of them is the only copy of durable data (invariant 4). Hubs of two versions work
//! together during an upgrade: a new field has a default, an unknown request is answered at once with nothing, and a name that is
//! changed here keeps its old spelling on the bus (D-94).

use crate::identity::rate_limit::{BudgetClaim, CallerId};
use crate::store::{AgentId, LogSeq, SubjectId};
use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The id of one run of one hub.
pub(crate) type HubId = u64;

/// Sent to all hubs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum PeerAnnouncement {
    Here(Heartbeat),
    /// This hub leaves the cluster.
    Gone(HubId),
    /// The log has grown up to this sequence.
    Grew(HubId, LogSeq),
    /// The debts, in nanoseconds, of callers that this hub decides about.
    Spent(HubId, Vec<(CallerId, u64)>),
}

/// The announcement by which a hub shows that it is alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Heartbeat {
    pub hub: HubId,
    /// How many subjects have a stream here, and a checksum over them, after the delta of this number. A peer with another
    /// checksum fetches the presence again.
    pub subjects: usize,
    pub sum: u64,
    #[serde(rename = "news")]
    pub delta_number: u64,
}

/// The presence of one subject at a hub: its id, its open streams, its frame sessions.
pub(super) type SubjectPresence = (SubjectId, u32, u32);

/// A subject, and how many of its streams wake a session (R-82). It is beside [`SubjectPresence`], which older hubs read too.
pub(super) type WakerCount = (SubjectId, u32);

/// Sent to one hub, which answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum PeerRequest {
    /// A presence delta; the answer says that it was applied.
    #[serde(rename = "News")]
    ApplyDelta(PresenceDelta),
    /// Which of these entries did a stream accept? Answered once the log is read up to `upto`.
    #[serde(rename = "Took")]
    AcceptedEntries { upto: LogSeq, seqs: Vec<LogSeq> },
    /// The presence after this subject, as a [`PresencePage`].
    #[serde(rename = "Places")]
    ListPresence(HubId, SubjectId),
    /// Spending of callers, and requests for one more; answered with a decision for each.
    Spend(Vec<BudgetClaim>),
    /// The agents after this one that were seen or refused a job, as in [`PresenceDelta::agents_seen`].
    #[serde(rename = "Heard")]
    ListAgentsSeen(AgentId),
    /// The settings that must be equal at all hubs, as [`SharedSettings`].
    #[serde(rename = "Alike")]
    ReadSettings,
    /// A query that the frame protocol answers.
    #[serde(rename = "Room")]
    QueryFrames(FrameQuery),
}

/// Settings that must be equal at all hubs; otherwise a hub could not read what another writes (D-87).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SharedSettings {
    pub host_name: String,
    /// The fingerprint of the sealing key.
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

/// A numbered change of the presence at one hub.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PresenceDelta {
    pub hub: HubId,
    /// One more than the last; 0 for an empty delta that only tests whether the peer answers.
    pub number: u64,
    #[serde(rename = "places")]
    pub presences: Vec<SubjectPresence>,
    /// Those of `presences` that have wakers.
    pub wakers: Vec<WakerCount>,
    #[serde(rename = "heard")]
    pub agents_seen: Vec<AgentSeen>,
}

/// An agent, and how many microseconds ago it was seen; negative when it refused a job.
pub(super) type AgentSeen = (AgentId, i64);

/// A page of the presence at a hub, after the delta of this number. A page that is not full is the last.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct PresencePage {
    #[serde(rename = "news")]
    pub delta_number: u64,
    #[serde(rename = "places")]
    pub presences: Vec<SubjectPresence>,
    /// Those of `presences` that have wakers.
    pub wakers: Vec<WakerCount>,
}

/// What the frame protocol of one hub asks that of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FrameQuery {
    /// The sessions of this principal after this one, in roster order; as many as fit in one message.
    Sessions {
        principal: AgentId,
        after: Option<(i64, String, String)>,
    },
    /// How many sessions received this sender's frame; answered once the frame is applied, or the stream of this epoch is read up
    /// to this sequence.
    Reached {
        sender: AgentId,
        id: uuid::Uuid,
        epoch: u64,
        #[serde(rename = "place")]
        seq: u64,
    },
}

pub(super) fn encode_message<T: Serialize>(message: &T) -> Bytes {
    serde_json::to_vec(message).unwrap_or_default().into()
}

/// `None` for a message that only a newer hub knows.
pub(super) fn decode_message<T: DeserializeOwned>(payload: &[u8]) -> Option<T> {
    serde_json::from_slice(payload).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(message: &impl Serialize) -> String {
        String::from_utf8(encode_message(message).to_vec()).unwrap()
    }

    /// D-94: a hub of the release before reads these spellings during an upgrade.
    #[test]
    fn names_on_the_bus_keep_their_spelling() {
        let delta = PresenceDelta {
            hub: 1,
            number: 2,
            presences: vec![(SubjectId(7), 1, 0)],
            wakers: Vec::new(),
            agents_seen: Vec::new(),
        };
        let requests = [
            (
                PeerRequest::ApplyDelta(delta),
                r#"{"News":{"hub":1,"number":2,"places":[[7,1,0]],"wakers":[],"heard":[]}}"#,
            ),
            (
                PeerRequest::AcceptedEntries {
                    upto: LogSeq(9),
                    seqs: vec![LogSeq(8)],
                },
                r#"{"Took":{"upto":9,"seqs":[8]}}"#,
            ),
            (
                PeerRequest::ListPresence(1, SubjectId(7)),
                r#"{"Places":[1,7]}"#,
            ),
            (PeerRequest::ListAgentsSeen(AgentId(7)), r#"{"Heard":7}"#),
            (PeerRequest::ReadSettings, r#""Alike""#),
            (
                PeerRequest::QueryFrames(FrameQuery::Reached {
                    sender: AgentId(7),
                    id: uuid::Uuid::nil(),
                    epoch: 3,
                    seq: 4,
                }),
                r#"{"Room":{"Reached":{"sender":7,"id":"00000000-0000-0000-0000-000000000000","epoch":3,"place":4}}}"#,
            ),
        ];
        for (request, expected) in &requests {
            assert_eq!(encoded(request), *expected);
        }
        let page = PresencePage {
            delta_number: 2,
            ..PresencePage::default()
        };
        assert_eq!(encoded(&page), r#"{"news":2,"places":[],"wakers":[]}"#);
        let heartbeat = Heartbeat {
            hub: 1,
            subjects: 2,
            sum: 3,
            delta_number: 4,
        };
        assert_eq!(
            encoded(&heartbeat),
            r#"{"hub":1,"subjects":2,"sum":3,"news":4}"#
        );
    }
}
