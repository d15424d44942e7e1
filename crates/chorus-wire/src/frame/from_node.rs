//! From a checked tree to typed fields: what a field holds, one rule per type.

use super::json_tree::JsonNode;
use super::scope::FrameScope;
use crate::{identity::Handle, time::UnixMicros};
use uuid::Uuid;

/// A field's type. After the checks of [`super::shape`] nothing here comes out as `None`, but the types do not know that.
pub trait FromNode: Sized {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self>;

    /// Whether printing leaves it out.
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

impl FromNode for UnixMicros {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        UnixMicros::parse(node?.as_text()?)
    }
}

impl FromNode for Handle {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        Handle::parse(node?.as_text()?)
    }
}

impl FromNode for FrameScope {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        FrameScope::parse(node?.as_text()?)
    }
}

/// Hyphenated, in any letter case, of version 4 and of the variant in which versions mean anything.
pub fn parse_uuid4(text: &str) -> Option<Uuid> {
    let id = if text.len() == 36 {
        Uuid::try_parse(text).ok()?
    } else {
        return None;
    };
    let is_version_4 = id.get_version_num() == 4 && id.get_variant() == uuid::Variant::RFC4122;
    is_version_4.then_some(id)
}
