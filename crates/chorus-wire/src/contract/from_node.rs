//! Converts the nodes of a checked JSON tree to the types of fields.

use super::json_tree::JsonNode;
use crate::credits::Credits;
use crate::secret::Secret;
use crate::time::UnixMicros;
use serde::Serialize;
use serde_json::{Map, Number, Value, value::RawValue};
use std::collections::BTreeMap;

/// The type of a field. After [`super::check_object`] no conversion returns `None`.
pub trait FromNode: Sized {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self>;

    /// Whether the field is omitted from the JSON.
    fn is_absent(&self) -> bool {
        false
    }
}

/// Absent, or `null` where the shape allows it.
impl<T: FromNode> FromNode for Option<T> {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        match node {
            None => Some(None),
            Some(node) if node.is_null() => Some(None),
            Some(_) => T::from_node(node).map(Some),
        }
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

/// An absent list is empty.
impl<T: FromNode> FromNode for Vec<T> {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        node?
            .as_array()?
            .iter()
            .map(|item| T::from_node(Some(item)))
            .collect()
    }
}

impl<T: FromNode> FromNode for BTreeMap<String, T> {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        let fields = &node?.as_object()?.0;
        fields
            .iter()
            .map(|(key, node)| Some((key.to_string(), T::from_node(Some(node))?)))
            .collect()
    }
}

impl FromNode for String {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        node?.as_text().map(str::to_owned)
    }
}

impl FromNode for Secret {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        node?.as_text().map(Secret::new)
    }
}

impl FromNode for bool {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        node?.as_bool()
    }
}

impl FromNode for u64 {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        node?.as_u64()
    }
}

impl FromNode for usize {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        node?.as_u64()?.try_into().ok()
    }
}

impl FromNode for Number {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        serde_json::from_str(node?.as_number()?).ok()
    }
}

impl FromNode for Credits {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        Credits::parse_digits(node?.as_number()?)
    }
}

impl FromNode for UnixMicros {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        UnixMicros::parse(node?.as_text()?)
    }
}

impl FromNode for Value {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        node.map(JsonNode::to_value)
    }
}

impl FromNode for Map<String, Value> {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        Some(node?.as_object()?.to_map())
    }
}

/// Any value as compact JSON.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct RawJson(pub Box<RawValue>);

impl RawJson {
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for RawJson {}

impl FromNode for RawJson {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        RawValue::from_string(node?.to_value().to_string())
            .ok()
            .map(Self)
    }
}

/// Types whose value is one text that their own `parse` accepts.
macro_rules! impl_from_text_node {
    ($($name:ty),+ $(,)?) => {
        $(impl $crate::contract::FromNode for $name {
            fn from_node(node: Option<&$crate::contract::JsonNode<'_>>) -> Option<Self> {
                <$name>::parse(node?.as_text()?)
            }
        })+
    };
}
pub(crate) use impl_from_text_node;
