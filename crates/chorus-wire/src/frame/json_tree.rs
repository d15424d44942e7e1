//! Parses JSON into a tree that borrows from the text: no duplicate keys, bounded depth, key order kept.

use super::error::FrameError;
use crate::limits;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::{collections::HashSet, fmt};

/// One JSON value.
#[derive(Debug)]
pub enum JsonNode<'a> {
    Null,
    Bool(bool),
    /// A whole number of at least 0, however it was written: `2.0` is the same JSON number as `2`.
    Unsigned(u64),
    /// Any other number: no field accepts one.
    OtherNumber,
    Text(Cow<'a, str>),
    Array(Vec<JsonNode<'a>>),
    Object(JsonObject<'a>),
}

/// The fields of an object in their written order.
#[derive(Debug)]
pub struct JsonObject<'a>(pub Vec<(Cow<'a, str>, JsonNode<'a>)>);

impl<'a> JsonObject<'a> {
    pub fn get(&self, name: &str) -> Option<&JsonNode<'a>> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, node)| node)
    }
}

impl<'a> JsonNode<'a> {
    /// Parses a text that is itself nested `depth` objects or arrays deep.
    pub fn parse(text: &'a str, depth: usize) -> Result<Self, FrameError> {
        let mut from = serde_json::Deserializer::from_str(text);
        let node = NodeVisitor(depth).deserialize(&mut from);
        node.and_then(|node| from.end().map(|()| node))
            .map_err(to_frame_error)
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            JsonNode::Text(text) => Some(text),
            JsonNode::Null
            | JsonNode::Bool(_)
            | JsonNode::Unsigned(_)
            | JsonNode::OtherNumber
            | JsonNode::Array(_)
            | JsonNode::Object(_) => None,
        }
    }

    pub fn as_array(&self) -> Option<&[JsonNode<'a>]> {
        match self {
            JsonNode::Array(items) => Some(items),
            JsonNode::Null
            | JsonNode::Bool(_)
            | JsonNode::Unsigned(_)
            | JsonNode::OtherNumber
            | JsonNode::Text(_)
            | JsonNode::Object(_) => None,
        }
    }

    pub fn as_object(&self) -> Option<&JsonObject<'a>> {
        match self {
            JsonNode::Object(object) => Some(object),
            JsonNode::Null
            | JsonNode::Bool(_)
            | JsonNode::Unsigned(_)
            | JsonNode::OtherNumber
            | JsonNode::Text(_)
            | JsonNode::Array(_) => None,
        }
    }
}

/// Removes the position from a parser error: it would be that in the fragment, not in the body.
fn to_frame_error(error: serde_json::Error) -> FrameError {
    let message = error.to_string();
    FrameError::invalid_json(
        message
            .rfind(" at line ")
            .map_or(message.as_str(), |end| &message[..end]),
    )
}

/// Builds a node that is nested this many objects and arrays deep.
struct NodeVisitor(usize);

impl<'de> DeserializeSeed<'de> for NodeVisitor {
    type Value = JsonNode<'de>;

    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> Result<JsonNode<'de>, D::Error> {
        from.deserialize_any(self)
    }
}

impl NodeVisitor {
    fn next_depth<E: de::Error>(&self) -> Result<usize, E> {
        match self.0 < limits::JSON_DEPTH {
            true => Ok(self.0 + 1),
            false => Err(E::custom(format_args!(
                "it is nested deeper than {} levels",
                limits::JSON_DEPTH
            ))),
        }
    }
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = JsonNode<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<JsonNode<'de>, E> {
        Ok(JsonNode::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<JsonNode<'de>, E> {
        Ok(JsonNode::Bool(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<JsonNode<'de>, E> {
        Ok(JsonNode::Unsigned(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<JsonNode<'de>, E> {
        Ok(u64::try_from(number).map_or(JsonNode::OtherNumber, JsonNode::Unsigned))
    }

    fn visit_f64<E>(self, number: f64) -> Result<JsonNode<'de>, E> {
        // Beyond 2^53 a float stands for several whole numbers, and no field accepts such a number.
        let is_whole =
            number.fract() == 0.0 && (0.0..=limits::SAFE_INTEGER_MAX as f64).contains(&number);
        Ok(if is_whole {
            JsonNode::Unsigned(number as u64)
        } else {
            JsonNode::OtherNumber
        })
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<JsonNode<'de>, E> {
        Ok(JsonNode::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<JsonNode<'de>, E> {
        Ok(JsonNode::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<JsonNode<'de>, A::Error> {
        let depth = self.next_depth()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(NodeVisitor(depth))? {
            items.push(item);
        }
        Ok(JsonNode::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonNode<'de>, A::Error> {
        let depth = self.next_depth()?;
        let mut fields = Vec::with_capacity(16);
        while let Some(key) = map.next_key_seed(KeyVisitor)? {
            fields.push((key, map.next_value_seed(NodeVisitor(depth))?));
        }
        match find_duplicate_key(&fields) {
            Some(key) => Err(de::Error::custom(format_args!(
                "{} is given twice",
                clip_key(key)
            ))),
            None => Ok(JsonNode::Object(JsonObject(fields))),
        }
    }
}

/// The first duplicate key: two parsers would read such an object differently.
pub fn find_duplicate_key<'a, T>(fields: &'a [(Cow<'_, str>, T)]) -> Option<&'a str> {
    // Comparing all pairs is fastest for an ordinary frame, but quadratic: an attacker could send thousands of keys.
    if fields.len() <= 32 {
        let is_duplicate = |index: usize| {
            fields[..index]
                .iter()
                .any(|(key, _)| *key == fields[index].0)
        };
        return (1..fields.len())
            .find(|index| is_duplicate(*index))
            .map(|index| &*fields[index].0);
    }
    let mut seen = HashSet::with_capacity(fields.len());
    fields
        .iter()
        .find(|(key, _)| !seen.insert(&**key))
        .map(|(key, _)| &**key)
}

/// Shortens a field name that an error repeats.
pub fn clip_key(name: &str) -> &str {
    &name[..name.floor_char_boundary(limits::FIELD_NAME_OCTETS)]
}

/// Parses a key, borrowed unless it contains escapes.
pub struct KeyVisitor;

impl<'de> DeserializeSeed<'de> for KeyVisitor {
    type Value = Cow<'de, str>;

    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> Result<Cow<'de, str>, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for KeyVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}
