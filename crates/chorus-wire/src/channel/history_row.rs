//! A line of a room's history: the same bytes on its stream, in its history and in the answer to whoever posted it.

use super::callback_event::{ChannelEvent, ChannelIdentity};
use super::channels::{MemberRoute, SenderKind};
use super::mention::MemberName;
use crate::time::UnixMicros;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// What a line is; also the name of its event on the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChannelRowKind)]
pub enum ChannelRowKind {
    Message,
    ToolCall,
    ToolResult,
    Status,
    Error,
    Member,
}

impl ChannelRowKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::ToolCall => "tool_call",
            Self::ToolResult => "tool_result",
            Self::Status => "status",
            Self::Error => "error",
            Self::Member => "member",
        }
    }
}

/// What became of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ChannelMemberChange)]
pub enum MemberChange {
    Joined,
    /// By itself.
    Left,
    /// By the owner or an operator.
    Removed,
    /// What was owed to it was given up.
    Unreachable,
    Reachable,
}

/// The event's own keys first, as the document prints them; then whose it is, and its place.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelRow)]
pub struct ChannelRow {
    #[serde(rename = "type")]
    pub kind: ChannelRowKind,
    /// Of a message its own id; of a tool call and its result the one that pairs them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub id: Option<String>,
    /// Of a tool, or of the member that came, went or cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<Object>)]
    pub args: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<Vec<Object>>)]
    pub parts: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub code: Option<String>,
    /// What became of the member.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub change: Option<MemberChange>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub via: Option<MemberRoute>,
    /// Of a result: the place of the call it answers.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call: Option<u64>,
    /// Members that a message calls by name.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub mentions: Vec<MemberName>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<ChannelIdentity>,
    pub sender: String,
    pub sender_kind: SenderKind,
    /// Steps from agent to agent since a person spoke.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turn: Option<u32>,
    /// Its place: what `since` and `Last-Event-ID` take.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cursor: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub timestamp: Option<UnixMicros>,
}

impl ChannelRow {
    /// A line with nothing but its kind and its sender; its place and time are given to it where it is kept.
    pub fn new(kind: ChannelRowKind, sender: &str, sender_kind: SenderKind) -> Self {
        Self {
            kind,
            id: None,
            name: None,
            args: None,
            content: None,
            parts: None,
            status: None,
            message: None,
            code: None,
            change: None,
            via: None,
            call: None,
            mentions: Vec::new(),
            agent: None,
            sender: sender.to_owned(),
            sender_kind,
            turn: None,
            cursor: None,
            timestamp: None,
        }
    }

    /// The line that an event makes; a message has no id yet.
    pub fn from_event(event: ChannelEvent, sender: &str, sender_kind: SenderKind) -> Self {
        let row = |kind| Self::new(kind, sender, sender_kind);
        match event {
            ChannelEvent::Message { content, parts } => Self {
                content: Some(content),
                parts,
                ..row(ChannelRowKind::Message)
            },
            ChannelEvent::ToolCall { id, name, args } => Self {
                id: Some(id),
                name: Some(name),
                args,
                ..row(ChannelRowKind::ToolCall)
            },
            ChannelEvent::ToolResult { id, content } => Self {
                id: Some(id),
                content: Some(content),
                ..row(ChannelRowKind::ToolResult)
            },
            ChannelEvent::Status { status } => Self {
                status: Some(status),
                ..row(ChannelRowKind::Status)
            },
            ChannelEvent::Error { message, code } => Self {
                message: Some(message),
                code,
                ..row(ChannelRowKind::Error)
            },
        }
    }
}
