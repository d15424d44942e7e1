//! JSON text as a tree that borrows from it, built once: no key twice, bounded depth, the order of keys kept.

use super::error::FrameError;
use crate::limits;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::{collections::HashSet, fmt};

/// One JSON value.
#[derive(Debug)]
pub enum Node<'a> {
    Null,
    Flag(bool),
    /// A whole number of at least 0, however it was written: `2.0` is the same JSON number as `2`.
    Whole(u64),
    /// Any other number: no field takes one.
    Number,
    Text(Cow<'a, str>),
    List(Vec<Node<'a>>),
    Object(Object<'a>),
}

/// The fields of an object as they were written.
#[derive(Debug)]
pub struct Object<'a>(pub Vec<(Cow<'a, str>, Node<'a>)>);

impl<'a> Object<'a> {
    pub fn get(&self, name: &str) -> Option<&Node<'a>> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, node)| node)
    }
}

impl<'a> Node<'a> {
    /// Reads a text that is nested in `depth` objects or arrays already.
    pub fn read(text: &'a str, depth: usize) -> Result<Self, FrameError> {
        let mut from = serde_json::Deserializer::from_str(text);
        let node = At(depth).deserialize(&mut from);
        node.and_then(|node| from.end().map(|()| node))
            .map_err(refused)
    }

    pub fn text(&self) -> Option<&str> {
        match self {
            Node::Text(text) => Some(text),
            Node::Null
            | Node::Flag(_)
            | Node::Whole(_)
            | Node::Number
            | Node::List(_)
            | Node::Object(_) => None,
        }
    }

    pub fn list(&self) -> Option<&[Node<'a>]> {
        match self {
            Node::List(items) => Some(items),
            Node::Null
            | Node::Flag(_)
            | Node::Whole(_)
            | Node::Number
            | Node::Text(_)
            | Node::Object(_) => None,
        }
    }

    pub fn object(&self) -> Option<&Object<'a>> {
        match self {
            Node::Object(object) => Some(object),
            Node::Null
            | Node::Flag(_)
            | Node::Whole(_)
            | Node::Number
            | Node::Text(_)
            | Node::List(_) => None,
        }
    }
}

/// A fragment's fault. Its place would be that in the fragment, not in the body, so it is not told.
fn refused(error: serde_json::Error) -> FrameError {
    let said = error.to_string();
    FrameError::json(
        said.rfind(" at line ")
            .map_or(said.as_str(), |end| &said[..end]),
    )
}

/// How many objects and arrays are around.
struct At(usize);

impl<'de> DeserializeSeed<'de> for At {
    type Value = Node<'de>;

    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> Result<Node<'de>, D::Error> {
        from.deserialize_any(self)
    }
}

impl At {
    fn deeper<E: de::Error>(&self) -> Result<usize, E> {
        match self.0 < limits::JSON_DEPTH {
            true => Ok(self.0 + 1),
            false => Err(E::custom(format_args!(
                "it is nested deeper than {} levels",
                limits::JSON_DEPTH
            ))),
        }
    }
}

impl<'de> Visitor<'de> for At {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Node<'de>, E> {
        Ok(Node::Flag(flag))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node<'de>, E> {
        Ok(Node::Whole(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node<'de>, E> {
        Ok(u64::try_from(number).map_or(Node::Number, Node::Whole))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node<'de>, E> {
        // Beyond 2^53 a float is no longer one whole number, and no field takes such a one anyway.
        let whole = number.fract() == 0.0 && (0.0..=limits::WHOLE_NUMBER as f64).contains(&number);
        Ok(if whole {
            Node::Whole(number as u64)
        } else {
            Node::Number
        })
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Node<'de>, A::Error> {
        let depth = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(At(depth))? {
            items.push(item);
        }
        Ok(Node::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node<'de>, A::Error> {
        let depth = self.deeper()?;
        let mut fields = Vec::with_capacity(16);
        while let Some(key) = map.next_key_seed(Key)? {
            fields.push((key, map.next_value_seed(At(depth))?));
        }
        match doubled(&fields) {
            Some(key) => Err(de::Error::custom(format_args!(
                "{} is given twice",
                clipped(key)
            ))),
            None => Ok(Node::Object(Object(fields))),
        }
    }
}

/// A key that comes twice: two parsers would read such an object differently.
pub fn doubled<'a, T>(fields: &'a [(Cow<'_, str>, T)]) -> Option<&'a str> {
    // Comparing all pairs is the fastest for an honest frame, and a feast for a dishonest one.
    if fields.len() <= 32 {
        let twice = |at: usize| fields[..at].iter().any(|(key, _)| *key == fields[at].0);
        return (1..fields.len())
            .find(|at| twice(*at))
            .map(|at| &*fields[at].0);
    }
    let mut seen = HashSet::with_capacity(fields.len());
    fields
        .iter()
        .find(|(key, _)| !seen.insert(&**key))
        .map(|(key, _)| &**key)
}

/// A name that an error may repeat.
pub fn clipped(name: &str) -> &str {
    &name[..name.floor_char_boundary(limits::FIELD_NAME_OCTETS)]
}

/// A key, borrowed unless it has escapes.
pub struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: de::Deserializer<'de>>(self, from: D) -> Result<Cow<'de, str>, D::Error> {
        from.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
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
