//! Cache invalidation: a log entry that tells the other hubs of the cluster which cached keys, names and grants are no longer
//! valid. It is part of the write's transaction, so it is not lost when the hub crashes after the commit (D-81).

use super::{Agent, AgentId, AgentKeyRow, SubjectId};
use crate::stream_end::StreamEnd;
use serde::{Deserialize, Serialize};

/// What the other hubs remove from their caches, and which streams they end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CacheInvalidation {
    /// Key hashes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<[u8; 32]>,
    /// Canonical names and handles of agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Handles of organisations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orgs: Vec<String>,
    /// Grants, as (grantor, grantee).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<(AgentId, AgentId)>,
    /// Subjects whose streams end, with the reason of the stream end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<(SubjectId, String)>,
    /// Keys that ended, with the streams that they may have opened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended_keys: Vec<EndedKey>,
}

/// A key that was rotated, was revoked or has expired, or a console session that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EndedKey {
    pub hash: [u8; 32],
    /// The agent and its memberships: the streams of these that this key opened end. Empty for the session of an operator, who
    /// reads the streams of every subject.
    pub subjects: Vec<SubjectId>,
}

impl EndedKey {
    pub fn is_of_operator(&self) -> bool {
        self.subjects.is_empty()
    }
}

impl CacheInvalidation {
    /// Invalidates the keys and all names of an agent that changed.
    pub fn for_agent(agent: &Agent, host: &str, further_keys: &[AgentKeyRow]) -> Self {
        let further_hashes = further_keys.iter().map(|key| key.hash);
        let mut invalidation = Self {
            keys: agent.key_hash.into_iter().chain(further_hashes).collect(),
            ..Self::default()
        };
        if let Ok(name) = chorus_wire::identity::AgentName::parse("agent_id", &agent.agent_id) {
            invalidation.names.push(name.canonical_text(host));
        }
        invalidation.names.extend(agent.handle.clone());
        invalidation
    }

    /// Ends the streams of these subjects.
    pub fn for_ended_streams(
        subjects: impl IntoIterator<Item = SubjectId>,
        stream_end: StreamEnd,
    ) -> Self {
        let ended = subjects
            .into_iter()
            .map(|subject| (subject, stream_end.reason().to_owned()))
            .collect();
        Self {
            ended,
            ..Self::default()
        }
    }

    /// The subjects whose streams end, and why. A reason that only a newer hub knows ends the stream as well; the client learns
    /// more when it reconnects.
    pub fn ended_streams(&self) -> impl Iterator<Item = (SubjectId, StreamEnd)> {
        self.ended.iter().map(|(subject, reason)| {
            let reason = StreamEnd::parse(reason).unwrap_or(StreamEnd::Unavailable);
            (*subject, reason)
        })
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}
