//! The checks of single fields, as data: the parser, the errors and the published schema are made from them.

use super::fault::ContractFault;
use super::json_schema::SchemaRefs;
use super::json_tree::{JsonNode, JsonObject};
use super::object_shape::{ObjectShape, find_invalid};
use super::text_grammar::{LengthUnit, RefusedCharacters, TextGrammar};
use crate::credits::Credits;
use crate::time::UnixMicros;
use serde_json::Value;

/// A constraint on one value.
#[derive(Clone, Copy, Debug)]
pub enum FieldCheck {
    Text {
        min: usize,
        max: usize,
        unit: LengthUnit,
        refused: RefusedCharacters,
    },
    Grammar(&'static TextGrammar),
    OneOf(&'static [&'static str]),
    Integer {
        min: u64,
        max: u64,
    },
    /// Credits: a number with at most two decimals, above zero or, if `zero` is set, zero too.
    Credits {
        zero: bool,
    },
    Bool,
    List {
        min: usize,
        max: usize,
        of: &'static FieldCheck,
    },
    Object(&'static ObjectShape),
    /// An object whose values all pass one check.
    MapOf(&'static FieldCheck),
    AnyObject,
    AnyValue,
    /// A rule that no other check expresses.
    Custom(&'static CustomCheck),
}

/// A shape within a value.
#[derive(Clone, Copy, Debug)]
pub enum NestedShape {
    Object(&'static ObjectShape),
    Items(&'static ObjectShape),
}

/// A check in code with the schema that describes it.
#[derive(Debug)]
pub struct CustomCheck {
    /// The fault of the value; its field is relative to the value.
    pub find_fault: fn(&CheckedValue<'_, '_>) -> Option<ContractFault>,
    pub schema: fn(SchemaRefs) -> Value,
    /// The objects that the schema refers to.
    pub nested: &'static [&'static ObjectShape],
}

/// A value and what is around it.
pub struct CheckedValue<'c, 'a> {
    pub node: &'c JsonNode<'a>,
    pub siblings: &'c JsonObject<'a>,
    pub context: &'c CheckContext<'c>,
}

/// What a check needs beside the value.
#[derive(Default)]
pub struct CheckContext<'c> {
    /// The frame around the payload.
    pub frame: Option<&'c JsonObject<'c>>,
    pub now: Option<UnixMicros>,
}

/// A text of `min` to `max` characters without NUL.
pub const fn characters(min: usize, max: usize) -> FieldCheck {
    FieldCheck::Text {
        min,
        max,
        unit: LengthUnit::Characters,
        refused: RefusedCharacters::Nul,
    }
}

/// A text of `min` to `max` characters without control characters; line breaks and tabs are allowed.
pub const fn printable(min: usize, max: usize) -> FieldCheck {
    FieldCheck::Text {
        min,
        max,
        unit: LengthUnit::Characters,
        refused: RefusedCharacters::Control,
    }
}

/// A text of `min` to `max` characters on one line.
pub const fn single_line(min: usize, max: usize) -> FieldCheck {
    FieldCheck::Text {
        min,
        max,
        unit: LengthUnit::Characters,
        refused: RefusedCharacters::ControlAndBreaks,
    }
}

/// A name of `min` to `max` characters on one line, all of which can be seen.
pub const fn visible_line(min: usize, max: usize) -> FieldCheck {
    FieldCheck::Text {
        min,
        max,
        unit: LengthUnit::Characters,
        refused: RefusedCharacters::ControlAndInvisible,
    }
}

/// A text of `min` to `max` octets, of any characters.
pub const fn octets(min: usize, max: usize) -> FieldCheck {
    FieldCheck::Text {
        min,
        max,
        unit: LengthUnit::Octets,
        refused: RefusedCharacters::None,
    }
}

pub const fn integer_between(min: u64, max: u64) -> FieldCheck {
    FieldCheck::Integer { min, max }
}

/// A list of at most `max` items.
pub const fn list_of(max: usize, of: &'static FieldCheck) -> FieldCheck {
    FieldCheck::List { min: 0, max, of }
}

impl FieldCheck {
    /// The fault of the value, with a path relative to the field.
    pub fn find_fault(&self, value: &CheckedValue<'_, '_>) -> Option<ContractFault> {
        let node = value.node;
        let is_valid = match self {
            FieldCheck::Text {
                min,
                max,
                unit,
                refused,
            } => {
                return find_text_fault(node.as_text(), (*min, *max), *unit, *refused);
            }
            FieldCheck::List { min, max, of } => {
                return find_list_fault(value, *min, *max, of);
            }
            FieldCheck::Object(shape) => match node.as_object() {
                Some(object) => return find_invalid(shape, object, value.context),
                None => false,
            },
            FieldCheck::MapOf(of) => return find_map_fault(value, of),
            FieldCheck::Custom(check) => return (check.find_fault)(value),
            FieldCheck::Grammar(grammar) => {
                let Some(text) = node.as_text() else {
                    return Some(ContractFault::invalid("", "a string"));
                };
                (grammar.accepts)(text)
            }
            FieldCheck::OneOf(texts) => node.as_text().is_some_and(|text| texts.contains(&text)),
            FieldCheck::Integer { min, max } => {
                node.as_u64().is_some_and(|n| (*min..=*max).contains(&n))
            }
            FieldCheck::Credits { zero } => node
                .as_number()
                .and_then(Credits::parse_digits)
                .is_some_and(|credits| credits.is_amount(*zero)),
            FieldCheck::Bool => node.as_bool().is_some(),
            FieldCheck::AnyObject => node.as_object().is_some(),
            FieldCheck::AnyValue => true,
        };
        (!is_valid).then(|| ContractFault::invalid("", self.requirement()))
    }

    /// The shape of the value if it is an object, or of its items if it is a list of objects.
    pub const fn nested_shape(&self) -> Option<NestedShape> {
        match self {
            FieldCheck::Object(shape) => Some(NestedShape::Object(shape)),
            FieldCheck::List {
                of: FieldCheck::Object(shape),
                ..
            } => Some(NestedShape::Items(shape)),
            FieldCheck::List { .. }
            | FieldCheck::Text { .. }
            | FieldCheck::Grammar(_)
            | FieldCheck::OneOf(_)
            | FieldCheck::Integer { .. }
            | FieldCheck::Credits { .. }
            | FieldCheck::Bool
            | FieldCheck::MapOf(_)
            | FieldCheck::AnyObject
            | FieldCheck::AnyValue
            | FieldCheck::Custom(_) => None,
        }
    }

    /// Completes the sentence “it must be …”.
    pub fn requirement(&self) -> String {
        match self {
            FieldCheck::Text { min, max, unit, .. } => length_requirement(*min, *max, *unit),
            FieldCheck::Grammar(grammar) => grammar.requirement.into(),
            FieldCheck::OneOf([only]) => format!("\"{only}\""),
            FieldCheck::OneOf(texts) => format!("one of {}", texts.join(", ")),
            FieldCheck::Integer { min, max } => format!("a whole number from {min} to {max}"),
            FieldCheck::Credits { zero } => format!(
                "a number {} with at most two decimals, up to {}",
                if *zero { "of at least 0" } else { "above 0" },
                Credits::MAX_AMOUNT
            ),
            FieldCheck::Bool => "true or false".into(),
            FieldCheck::List { min: 0, max, .. } => format!("an array of at most {max} items"),
            FieldCheck::List { min, max, .. } => format!("an array of {min} to {max} items"),
            FieldCheck::Object(_) | FieldCheck::MapOf(_) | FieldCheck::AnyObject => {
                "an object".into()
            }
            FieldCheck::AnyValue | FieldCheck::Custom(_) => "another value".into(),
        }
    }
}

fn length_requirement(min: usize, max: usize, unit: LengthUnit) -> String {
    let unit = match unit {
        LengthUnit::Characters => "characters",
        LengthUnit::Octets => "octets",
    };
    match min {
        0 => format!("a string of at most {max} {unit}"),
        _ => format!("a string of {min} to {max} {unit}"),
    }
}

fn find_text_fault(
    text: Option<&str>,
    (min, max): (usize, usize),
    unit: LengthUnit,
    refused: RefusedCharacters,
) -> Option<ContractFault> {
    let Some(text) = text else {
        return Some(ContractFault::invalid("", "a string"));
    };
    let has_length = match unit {
        LengthUnit::Octets => (min..=max).contains(&text.len()),
        // There are never more characters than octets, so most texts need no counting.
        LengthUnit::Characters if text.len() <= max && min <= 1 => text.len() >= min,
        LengthUnit::Characters => (min..=max).contains(&text.chars().count()),
    };
    if !has_length {
        return Some(ContractFault::invalid(
            "",
            length_requirement(min, max, unit),
        ));
    }
    (!refused.accepts(text)).then(|| ContractFault::invalid("", refused.requirement()))
}

fn find_list_fault(
    value: &CheckedValue<'_, '_>,
    min: usize,
    max: usize,
    of: &'static FieldCheck,
) -> Option<ContractFault> {
    let items = match value.node.as_array() {
        Some(items) if (min..=max).contains(&items.len()) => items,
        Some(_) | None => {
            let requirement = FieldCheck::List { min, max, of }.requirement();
            return Some(ContractFault::invalid("", requirement));
        }
    };
    items.iter().enumerate().find_map(|(index, node)| {
        let item = CheckedValue { node, ..*value };
        of.find_fault(&item).map(|fault| fault.inside_item(index))
    })
}

fn find_map_fault(value: &CheckedValue<'_, '_>, of: &'static FieldCheck) -> Option<ContractFault> {
    let Some(object) = value.node.as_object() else {
        return Some(ContractFault::invalid("", "an object"));
    };
    object.0.iter().find_map(|(key, node)| {
        let item = CheckedValue { node, ..*value };
        of.find_fault(&item).map(|fault| fault.inside(key))
    })
}
