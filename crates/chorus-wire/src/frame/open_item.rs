//! Open items: locks, decisions and handovers that the hub keeps until they end.

use super::kind::FrameKind;
use crate::string_enum::string_enum;
use crate::time::UnixMicros;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

string_enum! {
    /// What is open.
    OpenItemKind {
        /// A claim, until it is released or its lease ends.
        Lock "lock",
        /// A question to a person, until it is answered or its time ends.
        Decision "decision",
        /// Work that was handed over, until a session takes it up or a day is over.
        Handover "handover",
    }
}

impl OpenItemKind {
    /// The kind of the frames that open such items.
    pub const fn frame_kind(self) -> FrameKind {
        match self {
            Self::Lock => FrameKind::AgentLockRequest,
            Self::Decision => FrameKind::AgentBindingMoment,
            Self::Handover => FrameKind::AgentHandover,
        }
    }
}

/// One open item.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OpenItem {
    /// The frame that opened it.
    pub frame_id: Uuid,
    /// `lock`, `decision` or `handover`.
    #[schema(example = "lock")]
    pub item: String,
    /// The handle or the organisation that it stands under.
    #[schema(example = "~alice")]
    pub handle: String,
    /// The scope that the frame was sent to.
    #[schema(example = "~alice")]
    pub scope: String,
    #[schema(value_type = String, format = DateTime)]
    pub opened_at: UnixMicros,
    /// When it ends by itself.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: UnixMicros,
    /// The milliseconds until then by the hub's clock, for readers whose clock differs.
    pub left_ms: u64,
    /// The frame as it was submitted.
    #[schema(value_type = Object)]
    pub frame: Box<RawValue>,
}

impl OpenItem {
    /// `None` for an item that only newer hubs know.
    pub fn kind(&self) -> Option<OpenItemKind> {
        OpenItemKind::parse(&self.item)
    }
}

/// The open items of a handle, newest first. It is also the data of the event `open-items` of a frame stream.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OpenItems {
    #[schema(example = "~alice")]
    pub handle: String,
    pub items: Vec<OpenItem>,
    /// There are older ones that did not fit.
    pub more: bool,
    /// Give it back as `after` to read them. The event has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

string_enum! {
    /// How a caller ended an item.
    OpenItemOutcome { Taken "taken", Withdrawn "withdrawn", }
}

/// An item that has ended by a take or a withdrawal.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct EndedItem {
    pub frame_id: Uuid,
    #[schema(example = "~alice")]
    pub handle: String,
    /// `taken` or `withdrawn`.
    #[schema(example = "taken")]
    pub outcome: String,
    /// The frame that had opened it.
    #[schema(value_type = Object)]
    pub frame: Box<RawValue>,
}
