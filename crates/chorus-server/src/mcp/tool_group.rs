//! Groups of tools: a host that needs only some of them does not pay for the others in every conversation.

use chorus_wire::{Error, Result};
use std::str::FromStr;

/// A group, which is the beginning of its tools' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolGroup {
    Messages,
    Frames,
    Channels,
    Market,
}

impl ToolGroup {
    const ALL: [Self; 4] = [Self::Messages, Self::Frames, Self::Channels, Self::Market];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Frames => "frames",
            Self::Channels => "channels",
            Self::Market => "market",
        }
    }

    const fn tool_prefix(self) -> &'static str {
        match self {
            Self::Messages => "chorus_",
            Self::Frames => "agent_",
            Self::Channels => "channel_",
            Self::Market => "market_",
        }
    }
}

/// The groups that a host chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolGroups(Vec<ToolGroup>);

impl Default for ToolGroups {
    fn default() -> Self {
        Self(ToolGroup::ALL.to_vec())
    }
}

impl ToolGroups {
    pub fn has_tool(&self, name: &str) -> bool {
        self.0
            .iter()
            .any(|group| name.starts_with(group.tool_prefix()))
    }
}

impl FromStr for ToolGroups {
    type Err = Error;

    /// Names with commas between them, such as `messages,frames`.
    fn from_str(text: &str) -> Result<Self> {
        let find_group = |name: &str| {
            let found = ToolGroup::ALL
                .into_iter()
                .find(|group| group.as_str() == name);
            found.ok_or_else(|| {
                let names = ToolGroup::ALL.map(ToolGroup::as_str).join(", ");
                Error::validation(format!(
                    "tools must be some of {names}, with commas between them"
                ))
            })
        };
        text.split(',')
            .map(find_group)
            .collect::<Result<_>>()
            .map(Self)
    }
}
