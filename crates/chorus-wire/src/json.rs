//! Strict JSON: no duplicate keys, bounded depth, and errors that name the field.

use crate::{Error, Result, limits};
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// The body as UTF-8 text.
pub fn decode_utf8(body: &[u8]) -> Result<&str> {
    std::str::from_utf8(body).map_err(|_| Error::validation("the body is not valid UTF-8"))
}

/// Parses any JSON value without duplicate keys, nested at most [`limits::JSON_DEPTH`] deep.
pub fn parse_value(text: &str) -> Result<Value> {
    let mut from = serde_json::Deserializer::from_str(text);
    let value = UniqueKeyVisitor { depth: 0 }
        .deserialize(&mut from)
        .and_then(|value| from.end().map(|()| value));
    value.map_err(|e| map_serde_error(&e))
}

/// Like [`parse_value`], but the value must be an object.
pub fn parse_object(text: &str) -> Result<JsonFields> {
    match parse_value(text)? {
        Value::Object(map) => Ok(JsonFields {
            map,
            path: String::new(),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Error::validation("the body must be a JSON object"))
        }
    }
}

/// Converts a parser error: a syntax error keeps its position, a rule of this crate is reported without it.
pub fn map_serde_error(error: &serde_json::Error) -> Error {
    let message = error.to_string();
    match error.classify() {
        serde_json::error::Category::Data => {
            let without_position = message
                .rfind(" at line ")
                .map_or(message.as_str(), |end| &message[..end]);
            Error::validation(without_position)
        }
        serde_json::error::Category::Io
        | serde_json::error::Category::Syntax
        | serde_json::error::Category::Eof => {
            Error::validation(format!("the body is not valid JSON: {message}"))
        }
    }
}

/// The canonical text of a value: keys sorted, whole numbers without a fraction. Equal values give equal texts
/// (failure 17).
pub fn to_canonical_json(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write_canonical(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Number(number) => match number.as_f64() {
            // Beyond 2^53 a float does not distinguish whole numbers, so the digits stay as written.
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                out.push_str(&(float as i64).to_string());
            }
            Some(_) | None => out.push_str(&number.to_string()),
        },
        Value::Null | Value::Bool(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
}

/// An object whose fields are taken one by one; [`JsonFields::reject_unknown`] refuses what is left.
pub struct JsonFields {
    map: Map<String, Value>,
    path: String,
}

impl JsonFields {
    /// `path` is the prefix of the field names in errors.
    pub fn from_value(path: &str, value: Value) -> Result<Self> {
        match value {
            Value::Object(map) => Ok(Self {
                map,
                path: format!("{path}."),
            }),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => Err(Error::validation(format!("{path} must be an object"))),
        }
    }

    pub fn contains_key(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    pub fn insert(&mut self, key: &str, value: Value) {
        self.map.insert(key.to_owned(), value);
    }

    pub fn take_value(&mut self, key: &str) -> Option<Value> {
        self.map.remove(key)
    }

    /// `requirement` completes the sentence “it must be …”.
    fn field_error(&self, key: &str, requirement: &str) -> Error {
        Error::validation(format!("{}{key} must be {requirement}", self.path))
    }

    pub fn required_string(&mut self, key: &str) -> Result<String> {
        self.optional_string(key)?
            .ok_or_else(|| Error::validation(format!("{}{key} is required", self.path)))
    }

    /// The string may be absent; `null` is refused.
    pub fn optional_string(&mut self, key: &str) -> Result<Option<String>> {
        match self.map.remove(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::Array(_)
                | Value::Object(_),
            ) => Err(self.field_error(key, "a string")),
        }
    }

    /// A string of 1 to `max_chars` characters, which may be absent.
    pub fn optional_label(&mut self, key: &str, max_chars: usize) -> Result<Option<String>> {
        let label = self.optional_string(key)?;
        match &label {
            Some(text) if text.is_empty() || text.chars().count() > max_chars => {
                Err(self.field_error(key, &format!("1 to {max_chars} characters long")))
            }
            // PostgreSQL cannot store NUL in a text.
            Some(text) if text.contains('\0') => {
                Err(self.field_error(key, "a text without NUL characters"))
            }
            Some(_) | None => Ok(label),
        }
    }

    /// A whole number of at least `min`, which may be absent.
    pub fn optional_count(&mut self, key: &str, min: u64) -> Result<Option<u64>> {
        match self.map.remove(key) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(count) if count >= min && count <= i64::MAX as u64 => Ok(Some(count)),
                Some(_) | None => {
                    Err(self.field_error(key, &format!("a whole number of at least {min}")))
                }
            },
        }
    }

    /// Refuses the first field that was not taken.
    pub fn reject_unknown(self) -> Result<()> {
        match self.map.keys().next() {
            None => Ok(()),
            Some(key) => Err(Error::validation(format!(
                "{}{key} is not a field of this request",
                self.path
            ))),
        }
    }
}

/// Builds a value and refuses duplicate keys: two parsers would read such a document differently.
struct UniqueKeyVisitor {
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for UniqueKeyVisitor {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(
        self,
        from: D,
    ) -> std::result::Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeyVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, v: bool) -> std::result::Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> std::result::Result<Value, E> {
        Ok(Value::from(v))
    }

    fn visit_u64<E>(self, v: u64) -> std::result::Result<Value, E> {
        Ok(Value::from(v))
    }

    fn visit_f64<E>(self, v: f64) -> std::result::Result<Value, E> {
        Ok(Value::from(v))
    }

    fn visit_str<E>(self, v: &str) -> std::result::Result<Value, E> {
        Ok(Value::String(v.to_owned()))
    }

    fn visit_string<E>(self, v: String) -> std::result::Result<Value, E> {
        Ok(Value::String(v))
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Value, A::Error> {
        let depth = next_depth(self.depth)?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(UniqueKeyVisitor { depth })? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Value, A::Error> {
        let depth = next_depth(self.depth)?;
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(UniqueKeyVisitor { depth })?;
            if fields.contains_key(&key) {
                return Err(de::Error::custom(format!("{key} is given twice")));
            }
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

fn next_depth<E: de::Error>(depth: usize) -> std::result::Result<usize, E> {
    if depth < limits::JSON_DEPTH {
        Ok(depth + 1)
    } else {
        Err(E::custom(format!(
            "the body is nested deeper than {} levels",
            limits::JSON_DEPTH
        )))
    }
}
