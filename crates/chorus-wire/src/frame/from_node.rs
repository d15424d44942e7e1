//! Converts the nodes of a checked JSON tree to the types of fields.

use super::draft::{ComputeLocation, ContextCheck};
use super::json_tree::JsonNode;
use super::payload::{DiagnosticSeverity, EventClass, IntentUrgency};
use super::scope::FrameScope;
use crate::{identity::Handle, time::UnixMicros};
use uuid::Uuid;

/// The type of a field. After [`super::object_shape::check_object`] no conversion returns `None`.
pub trait FromNode: Sized {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self>;

    /// Whether the field is omitted from the JSON.
    fn is_absent(&self) -> bool {
        false
    }
}

impl<T: FromNode> FromNode for Option<T> {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        match node {
            None => Some(None),
            Some(_) => T::from_node(node).map(Some),
        }
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: FromNode> FromNode for Vec<T> {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        node?
            .as_array()?
            .iter()
            .map(|item| T::from_node(Some(item)))
            .collect()
    }
}

impl FromNode for String {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        node?.as_text().map(str::to_owned)
    }
}

impl FromNode for bool {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        match node? {
            JsonNode::Bool(flag) => Some(*flag),
            JsonNode::Null
            | JsonNode::Unsigned(_)
            | JsonNode::OtherNumber
            | JsonNode::Text(_)
            | JsonNode::Array(_)
            | JsonNode::Object(_) => None,
        }
    }
}

impl FromNode for u64 {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        match node? {
            JsonNode::Unsigned(number) => Some(*number),
            JsonNode::Null
            | JsonNode::Bool(_)
            | JsonNode::OtherNumber
            | JsonNode::Text(_)
            | JsonNode::Array(_)
            | JsonNode::Object(_) => None,
        }
    }
}

impl FromNode for Uuid {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        parse_uuid4(node?.as_text()?)
    }
}

/// Types whose value is one text that their own `parse` accepts.
macro_rules! impl_from_text_node {
    ($($name:ty),+ $(,)?) => {
        $(impl FromNode for $name {
            fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
                <$name>::parse(node?.as_text()?)
            }
        })+
    };
}

impl_from_text_node!(
    UnixMicros,
    Handle,
    FrameScope,
    ComputeLocation,
    ContextCheck,
    EventClass,
    DiagnosticSeverity,
    IntentUrgency,
);

/// A hyphenated UUID in any letter case, of version 4 and of the RFC 4122 variant, without which the version has
/// no meaning.
pub fn parse_uuid4(text: &str) -> Option<Uuid> {
    let id = if text.len() == 36 {
        Uuid::try_parse(text).ok()?
    } else {
        return None;
    };
    let is_version_4 = id.get_version_num() == 4 && id.get_variant() == uuid::Variant::RFC4122;
    is_version_4.then_some(id)
}
