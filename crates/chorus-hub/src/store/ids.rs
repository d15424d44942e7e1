//! The ids of rows and the sequence of the log. Each is a type of its own, so that the compiler rejects one in place of another.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A number that identifies a row.
pub(crate) trait RowId: Copy {
    fn from_number(number: i64) -> Self;
    fn to_number(self) -> i64;

    /// Which of `shard_count` shards of a map holds this id.
    fn shard_index(self, shard_count: usize) -> usize {
        self.to_number().unsigned_abs() as usize % shard_count
    }

    /// Sorts before every row.
    const BEFORE_ALL: Self;
    /// Sorts after every row.
    const AFTER_ALL: Self;
}

macro_rules! row_ids {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub(crate) i64);

        impl RowId for $name {
            const BEFORE_ALL: Self = Self(i64::MIN);
            const AFTER_ALL: Self = Self(i64::MAX);

            fn from_number(number: i64) -> Self {
                Self(number)
            }

            fn to_number(self) -> i64 {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, "{}({})", stringify!($name), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    )+};
}

row_ids! {
    /// What a log entry is about or comes from: an agent, an organisation, a channel, a member, or the hub itself.
    SubjectId,
    /// A registered agent.
    AgentId,
    /// An organisation of agents.
    OrgId,
    /// A channel.
    ChannelId,
    /// A membership of a channel.
    MemberId,
    /// The owner of agents, who has the account in the ledger.
    OwnerId,
    /// An account of the ledger.
    AccountId,
    /// A posting of the ledger.
    PostingId,
    /// A job of the market; `job_id` is the name that its requester gave it.
    JobId,
    /// An open item of the frame protocol.
    OpenItemId,
    /// A row of the outbox.
    OutboxRowId,
    /// The place of an entry in the log.
    LogSeq,
}

impl SubjectId {
    /// The subject of entries that concern the hub itself.
    pub(crate) const HUB: Self = Self(0);

    /// The agent of this id. No agent has the id of an organisation, channel or member, so a lookup of one finds nothing.
    pub(crate) const fn as_agent(self) -> AgentId {
        AgentId(self.0)
    }

    /// The organisation of this id; a lookup of another subject finds none.
    pub(crate) const fn as_org(self) -> OrgId {
        OrgId(self.0)
    }
}

/// Agents, organisations, channels and members share one id space.
macro_rules! impl_subject_from {
    ($($name:ident),+) => {$(
        impl From<$name> for SubjectId {
            fn from(id: $name) -> Self {
                Self(id.0)
            }
        }
    )+};
}
impl_subject_from!(AgentId, OrgId, ChannelId, MemberId);

impl LogSeq {
    /// Before the first entry.
    pub(crate) const START: Self = Self(0);

    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }

    pub(crate) const fn previous(self) -> Self {
        Self(self.0 - 1)
    }

    pub(crate) const fn to_u64(self) -> u64 {
        self.0 as u64
    }

    /// How many sequences come after `earlier` up to this one.
    pub(crate) const fn distance_from(self, earlier: Self) -> i64 {
        self.0 - earlier.0
    }

    /// A sequence that a client sent. One beyond the largest sequence is after every entry.
    pub(crate) fn from_client(seq: u64) -> Self {
        Self(i64::try_from(seq).unwrap_or(i64::MAX))
    }
}

impl Default for LogSeq {
    fn default() -> Self {
        Self::START
    }
}
