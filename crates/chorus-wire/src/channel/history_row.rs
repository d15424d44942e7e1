//! One row of a channel's history: the same JSON on the stream, in the history and in the reply to the post.

use super::callback_event::{ChannelEvent, ChannelIdentity};
use super::channels::{MemberRoute, SenderKind};
use super::mention::MemberName;
use crate::string_enum::string_enum;
use crate::time::UnixMicros;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

string_enum! {
    /// The kind of a row, which is also the name of its event on the stream.
    #[derive(ToSchema)]
    #[schema(as = ChannelRowKind)]
    ChannelRowKind {
        Message "message",
        ToolCall "tool_call",
        ToolResult "tool_result",
        Status "status",
        Error "error",
        Member "member",
        Artifact "artifact",
        File "file",
    }
}

/// What happened to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ChannelMemberChange)]
pub enum MemberChange {
    Joined,
    /// An invited agent does not want to join.
    Declined,
    /// The member left by itself.
    Left,
    /// The owner or an operator removed it.
    Removed,
    /// The hub gave up on its deliveries.
    Unreachable,
    Reachable,
    /// It did not take the message `id`; `message` says why.
    Refused,
    /// Too many messages wait for it: those up to the message `id` are only in the history.
    Dropped,
}

/// A row of a channel's history. Which fields it has depends on its `type`.
// The keys of the event come first, as the document prints them, then its author and its position.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ChannelRow)]
pub struct ChannelRow {
    #[serde(rename = "type")]
    pub kind: ChannelRowKind,
    /// The id of a message, or the id that pairs a tool call with its result.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub id: Option<String>,
    /// The name of the tool, of the member that changed, or of the artifact or file.
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
    /// What happened to the member.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub change: Option<MemberChange>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub via: Option<MemberRoute>,
    /// The version of the artifact that was written.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<u64>,
    /// In a tool result, the cursor of its call.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub call: Option<u64>,
    /// The members that the message mentions.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub mentions: Vec<MemberName>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub agent: Option<ChannelIdentity>,
    pub sender: String,
    pub sender_kind: SenderKind,
    /// Agent-to-agent steps since a person's message.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub turn: Option<u32>,
    /// The position that `since` and `Last-Event-ID` take.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cursor: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub timestamp: Option<UnixMicros>,
}

impl ChannelRow {
    /// A row with only its kind and sender. The store sets its cursor and timestamp.
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
            version: None,
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

    /// The row of a callback event; a message has no id yet.
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
