//! A JSON value as a tree that borrows from its text.

use super::fault::ContractFault;
use super::json_parser::JsonParser;
use crate::limits;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// One JSON value and its text.
#[derive(Clone, Debug)]
pub struct JsonNode<'a> {
    /// As written, without the blanks around it; empty for a text that was not parsed from JSON.
    pub text: &'a str,
    pub value: JsonValue<'a>,
}

#[derive(Clone, Debug)]
pub enum JsonValue<'a> {
    Null,
    Bool(bool),
    /// The digits are the node's text.
    Number,
    Text(Cow<'a, str>),
    Array(Vec<JsonNode<'a>>),
    Object(JsonObject<'a>),
}

/// The fields of an object in their written order.
#[derive(Clone, Debug, Default)]
pub struct JsonObject<'a>(pub Vec<(Cow<'a, str>, JsonNode<'a>)>);

impl<'a> JsonObject<'a> {
    pub fn get(&self, name: &str) -> Option<&JsonNode<'a>> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, node)| node)
    }

    /// Like [`Self::get`], looking at this index first: clients write fields mostly in the order of the shape.
    pub fn get_near(&self, index: usize, name: &str) -> Option<&JsonNode<'a>> {
        match self.0.get(index) {
            Some((key, node)) if key == name => Some(node),
            Some(_) | None => self.get(name),
        }
    }

    /// Reads fields one after the other, in the order of the shape.
    pub fn in_shape_order(&self) -> ShapeOrderReader<'_, 'a> {
        ShapeOrderReader {
            object: self,
            index: 0,
        }
    }

    pub fn to_map(&self) -> Map<String, Value> {
        self.0
            .iter()
            .map(|(key, node)| (key.to_string(), node.to_value()))
            .collect()
    }
}

/// Looks for each next field first where the last one was found.
pub struct ShapeOrderReader<'o, 'a> {
    object: &'o JsonObject<'a>,
    index: usize,
}

impl<'o, 'a> ShapeOrderReader<'o, 'a> {
    pub fn next_field(&mut self, name: &str) -> Option<&'o JsonNode<'a>> {
        let node = self.object.get_near(self.index, name);
        // A field that is absent leaves the place to the one after it.
        self.index += usize::from(node.is_some());
        node
    }
}

impl<'a> JsonNode<'a> {
    /// A text that did not come as JSON.
    pub fn from_text(text: &'a str) -> Self {
        Self {
            text: "",
            value: JsonValue::Text(Cow::Borrowed(text)),
        }
    }

    /// A number that did not come as JSON.
    pub fn from_digits(digits: &'a str) -> Self {
        Self {
            text: digits,
            value: JsonValue::Number,
        }
    }

    /// Parses one value and nothing after it.
    pub fn parse(text: &'a str) -> Result<Self, ContractFault> {
        JsonParser::parse_text(text)
    }

    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            JsonValue::Text(text) => Some(text),
            JsonValue::Null
            | JsonValue::Bool(_)
            | JsonValue::Number
            | JsonValue::Array(_)
            | JsonValue::Object(_) => None,
        }
    }

    pub fn as_array(&self) -> Option<&[JsonNode<'a>]> {
        match &self.value {
            JsonValue::Array(items) => Some(items),
            JsonValue::Null
            | JsonValue::Bool(_)
            | JsonValue::Number
            | JsonValue::Text(_)
            | JsonValue::Object(_) => None,
        }
    }

    pub fn as_object(&self) -> Option<&JsonObject<'a>> {
        match &self.value {
            JsonValue::Object(object) => Some(object),
            JsonValue::Null
            | JsonValue::Bool(_)
            | JsonValue::Number
            | JsonValue::Text(_)
            | JsonValue::Array(_) => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.value {
            JsonValue::Bool(flag) => Some(flag),
            JsonValue::Null
            | JsonValue::Number
            | JsonValue::Text(_)
            | JsonValue::Array(_)
            | JsonValue::Object(_) => None,
        }
    }

    /// The digits of a number.
    pub fn as_number(&self) -> Option<&'a str> {
        matches!(self.value, JsonValue::Number).then_some(self.text)
    }

    /// A whole number of at least 0, in any notation: `2.0` is the same JSON number as `2`.
    pub fn as_u64(&self) -> Option<u64> {
        let digits = self.as_number()?;
        if digits.bytes().all(|b| b.is_ascii_digit()) {
            return digits.parse().ok();
        }
        // Beyond 2^53 a float stands for several whole numbers.
        let number: f64 = digits.parse().ok()?;
        let is_whole =
            number.fract() == 0.0 && (0.0..=limits::SAFE_INTEGER_MAX as f64).contains(&number);
        is_whole.then_some(number as u64)
    }

    pub fn is_null(&self) -> bool {
        matches!(self.value, JsonValue::Null)
    }

    /// Whether a key or text in it has a NUL character.
    pub fn has_nul(&self) -> bool {
        match &self.value {
            JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number => false,
            JsonValue::Text(text) => text.contains('\0'),
            JsonValue::Array(items) => items.iter().any(JsonNode::has_nul),
            JsonValue::Object(object) => object
                .0
                .iter()
                .any(|(key, node)| key.contains('\0') || node.has_nul()),
        }
    }

    /// The same value as `serde_json` would parse it.
    pub fn to_value(&self) -> Value {
        match &self.value {
            JsonValue::Null => Value::Null,
            JsonValue::Bool(flag) => Value::Bool(*flag),
            // The grammar was checked, so only an exponent beyond a float's range fails.
            JsonValue::Number => serde_json::from_str(self.text).unwrap_or_default(),
            JsonValue::Text(text) => Value::String(text.to_string()),
            JsonValue::Array(items) => Value::Array(items.iter().map(JsonNode::to_value).collect()),
            JsonValue::Object(object) => Value::Object(object.to_map()),
        }
    }
}
