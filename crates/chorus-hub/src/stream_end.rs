//! Why the hub closed a stream, in the words that its reader and other hubs are told.

/// Why a stream was closed by the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The hub is stopping; the client resumes by its cursor.
    Shutdown,
    /// The key that opened it was rotated.
    KeyRotated,
    /// The agent was unregistered.
    Unregistered,
    /// The store did not answer; the client resumes by its cursor.
    Unavailable,
    /// The member was removed from the channel.
    MemberRemoved,
    ChannelDeleted,
}

impl StreamEnd {
    /// The word for it in the last event, and in a cache invalidation.
    pub const fn reason(self) -> &'static str {
        match self {
            StreamEnd::Shutdown => "shutdown",
            StreamEnd::KeyRotated => "key_rotated",
            StreamEnd::Unregistered => "unregistered",
            StreamEnd::Unavailable => "unavailable",
            StreamEnd::MemberRemoved => "removed",
            StreamEnd::ChannelDeleted => "channel_deleted",
        }
    }

    /// The end with this reason; `None` for one that only a newer hub knows.
    pub(crate) fn parse(reason: &str) -> Option<Self> {
        const ALL: [StreamEnd; 6] = [
            StreamEnd::Shutdown,
            StreamEnd::KeyRotated,
            StreamEnd::Unregistered,
            StreamEnd::Unavailable,
            StreamEnd::MemberRemoved,
            StreamEnd::ChannelDeleted,
        ];
        ALL.into_iter().find(|end| end.reason() == reason)
    }

    /// Whether the reader still gets the events from before the end. After a revoked credential it gets nothing more.
    pub(crate) const fn is_graceful(self) -> bool {
        match self {
            StreamEnd::Shutdown | StreamEnd::Unavailable => true,
            StreamEnd::KeyRotated
            | StreamEnd::Unregistered
            | StreamEnd::MemberRemoved
            | StreamEnd::ChannelDeleted => false,
        }
    }
}
