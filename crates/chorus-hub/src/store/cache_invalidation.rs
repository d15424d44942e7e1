//! What a write makes untrue: an entry of the log that hubs sharing the database hear, and nobody else. In the write's own
//! transaction, so that a hub that dies after its commit has still said it (D-81).

use crate::delivery::StreamEnd;
use crate::identity::Agent;
use serde::{Deserialize, Serialize};

/// What is to be forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CacheInvalidation {
    /// Hashes of keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<[u8; 32]>,
    /// Names of agents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Handles of organisations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub orgs: Vec<String>,
    /// Who let whom address it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<(i64, i64)>,
    /// Whose streams end, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<(i64, String)>,
}

impl CacheInvalidation {
    /// The agent is no longer what it was.
    pub fn for_agent(agent: &Agent, host: &str) -> Self {
        let mut invalidation = Self {
            keys: agent.key_hash.into_iter().collect(),
            ..Self::default()
        };
        if let Ok(name) = chorus_wire::identity::AgentName::parse("agent_id", &agent.agent_id) {
            invalidation.names.push(name.canonical_text(host));
        }
        invalidation.names.extend(agent.handle.clone());
        invalidation
    }

    /// Streams of these subjects end.
    pub fn for_ended_streams(
        subjects: impl IntoIterator<Item = i64>,
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
