//! The shape of a JSON text: key order and types, by which replies are compared with documented examples.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

#[derive(Debug, PartialEq)]
pub enum Shape {
    Null,
    Bool,
    Whole,
    Fraction,
    Text(String),
    List(Vec<Shape>),
    Object(Vec<(String, Shape)>),
}

impl Shape {
    pub fn of(text: &str) -> Self {
        serde_json::from_str(text).expect(text)
    }

    /// Whether the keys of the example come first, in their order and with their types. Further keys may follow; texts may
    /// differ.
    pub fn begins_like(&self, printed: &Shape) -> bool {
        match (self, printed) {
            (Shape::Object(ours), Shape::Object(printed)) => {
                ours.len() >= printed.len()
                    && ours
                        .iter()
                        .zip(printed)
                        .all(|((a, ours), (b, printed))| a == b && ours.begins_like(printed))
            }
            (Shape::List(ours), Shape::List(printed)) => {
                ours.len() == printed.len()
                    && ours
                        .iter()
                        .zip(printed)
                        .all(|(ours, printed)| ours.begins_like(printed))
            }
            (Shape::Text(_), Shape::Text(_)) => true,
            (ours, printed) => ours == printed,
        }
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::Bool)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::Whole)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::Whole)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::Fraction)
    }

    fn visit_str<E>(self, text: &str) -> Result<Shape, E> {
        Ok(Shape::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Shape::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(Shape::Object(fields))
    }
}
