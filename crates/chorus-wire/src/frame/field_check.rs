//! The checks that a field of a frame must pass; object shapes are lists of them.

use super::from_node::parse_uuid4;
use super::json_tree::{JsonNode, JsonObject};
use super::object_shape::{FieldFault, ObjectShape, find_invalid};
use super::scope::{self, FrameScope};
use crate::{identity::Handle, limits, time::UnixMicros};

/// A constraint on one value. Lengths are octets (FRM-28).
#[derive(Debug)]
pub enum FieldCheck {
    Text {
        min: usize,
        max: usize,
    },
    OneOf(&'static [&'static str]),
    Integer {
        min: u64,
        max: u64,
    },
    Bool,
    Uuid4,
    Instant,
    /// A timestamp near the hub's clock, if the context has a clock (FRM-10, R-49).
    Recent,
    Handle,
    /// A handle that is not an instrument.
    Sovereign,
    /// `~name` with an optional `@version`.
    Drafter,
    /// `namespace:name`.
    ConvergenceClass,
    Scope,
    List {
        min: usize,
        max: usize,
        of: &'static FieldCheck,
    },
    Object(&'static ObjectShape),
    /// An object of flags that default to true; at least one must be true (FRM-41).
    AnyFlagOpen(&'static ObjectShape),
    /// An index into the sibling list of this name, counted from 0 (FRM-40).
    IndexIn(&'static str),
    /// The same value as the frame's field of this name.
    SameAsFrame(&'static str),
    /// The payload. Its shape depends on the kind and is checked in a later step.
    Payload,
}

/// Whether a value is an object or a list of objects.
pub enum NestedShape {
    OneObject(&'static ObjectShape),
    EachItem(&'static ObjectShape),
    NoFields,
}

/// What a check needs beside the value.
#[derive(Default)]
pub struct CheckContext<'a> {
    /// The frame around the payload.
    pub frame: Option<&'a JsonObject<'a>>,
    pub now: Option<UnixMicros>,
}

pub const fn text_between(min: usize, max: usize) -> FieldCheck {
    FieldCheck::Text { min, max }
}

pub const fn integer_between(min: u64, max: u64) -> FieldCheck {
    FieldCheck::Integer { min, max }
}

impl FieldCheck {
    /// The fault of the value of field `name`, whose object is `siblings`.
    pub fn find_fault(
        &self,
        name: &str,
        node: &JsonNode<'_>,
        siblings: &JsonObject<'_>,
        context: &CheckContext<'_>,
    ) -> Option<FieldFault> {
        let text = node.as_text();
        let is_valid = match self {
            FieldCheck::List { min, max, of } => {
                return find_list_fault(name, node, (*min, *max, of), siblings, context);
            }
            FieldCheck::Object(shape) => return self.find_object_fault(name, shape, node, context),
            FieldCheck::AnyFlagOpen(shape) => {
                match self.find_object_fault(name, shape, node, context) {
                    None => !are_all_false(shape, node),
                    fault => return fault,
                }
            }
            FieldCheck::Text { min, max } => {
                text.is_some_and(|text| (*min..=*max).contains(&text.len()))
            }
            FieldCheck::OneOf(texts) => text.is_some_and(|text| texts.contains(&text)),
            FieldCheck::Integer { min, max } => {
                matches!(node, JsonNode::Unsigned(n) if (*min..=*max).contains(n))
            }
            FieldCheck::Bool => matches!(node, JsonNode::Bool(_)),
            FieldCheck::Uuid4 => text.and_then(parse_uuid4).is_some(),
            FieldCheck::Instant => text.and_then(UnixMicros::parse).is_some(),
            FieldCheck::Recent => {
                let at = text.and_then(UnixMicros::parse);
                at.is_some_and(|at| context.now.is_none_or(|now| is_within_clock_skew(at, now)))
            }
            FieldCheck::Handle => text.and_then(Handle::parse).is_some(),
            FieldCheck::Sovereign => text
                .and_then(Handle::parse)
                .is_some_and(|handle| !handle.is_instrument()),
            FieldCheck::Drafter => text.is_some_and(is_drafter),
            FieldCheck::ConvergenceClass => text.is_some_and(is_convergence_class),
            FieldCheck::Scope => text.and_then(FrameScope::parse).is_some(),
            FieldCheck::IndexIn(list) => {
                let items = siblings
                    .get(list)
                    .and_then(JsonNode::as_array)
                    .map_or(0, <[_]>::len);
                matches!(node, JsonNode::Unsigned(index) if *index < items as u64)
            }
            // A payload that is parsed alone has no frame to compare with.
            FieldCheck::SameAsFrame(field) => text.is_some_and(|text| {
                context
                    .frame
                    .is_none_or(|frame| frame.get(field).and_then(JsonNode::as_text) == Some(text))
            }),
            // another type than an object is `payload-kind-mismatch`. R-53: null is `field-invalid`.
            FieldCheck::Payload => !matches!(node, JsonNode::Null),
        };
        (!is_valid).then(|| self.to_fault(name))
    }

    pub fn nested_shape(&self) -> NestedShape {
        match self {
            FieldCheck::Object(shape) | FieldCheck::AnyFlagOpen(shape) => {
                NestedShape::OneObject(shape)
            }
            FieldCheck::List {
                of: FieldCheck::Object(shape),
                ..
            } => NestedShape::EachItem(shape),
            FieldCheck::List { .. }
            | FieldCheck::Text { .. }
            | FieldCheck::OneOf(_)
            | FieldCheck::Integer { .. }
            | FieldCheck::Bool
            | FieldCheck::Uuid4
            | FieldCheck::Instant
            | FieldCheck::Recent
            | FieldCheck::Handle
            | FieldCheck::Sovereign
            | FieldCheck::Drafter
            | FieldCheck::ConvergenceClass
            | FieldCheck::Scope
            | FieldCheck::IndexIn(_)
            | FieldCheck::SameAsFrame(_)
            | FieldCheck::Payload => NestedShape::NoFields,
        }
    }

    fn find_object_fault(
        &self,
        name: &str,
        shape: &ObjectShape,
        node: &JsonNode<'_>,
        context: &CheckContext<'_>,
    ) -> Option<FieldFault> {
        let Some(object) = node.as_object() else {
            return Some(self.to_fault(name));
        };
        let inner = find_invalid(shape, object, context)?;
        Some(FieldFault {
            field: format!("{name}.{}", inner.field),
            requirement: inner.requirement,
        })
    }

    fn to_fault(&self, name: &str) -> FieldFault {
        FieldFault {
            field: name.to_owned(),
            requirement: self.requirement(),
        }
    }

    /// Completes the sentence “it must be …”.
    fn requirement(&self) -> String {
        match self {
            FieldCheck::Text { min: 0, max } => format!("a string of at most {max} octets"),
            FieldCheck::Text { min, max } => format!("a string of {min} to {max} octets"),
            FieldCheck::OneOf(texts) => format!("one of {}", texts.join(", ")),
            FieldCheck::Integer { min, max } => format!("a whole number from {min} to {max}"),
            FieldCheck::Bool => "true or false".into(),
            FieldCheck::Uuid4 => "a UUID of version 4, with hyphens".into(),
            FieldCheck::Instant => "an RFC 3339 time with its zone".into(),
            FieldCheck::Recent => {
                "an RFC 3339 time with its zone, within 24 hours of the hub's clock".into()
            }
            FieldCheck::Handle => "a handle such as ~alice, in lower case".into(),
            FieldCheck::Sovereign => {
                "the handle of a person or organisation, not of an instrument (~cc-…)".into()
            }
            FieldCheck::Drafter => "an instrument such as ~cc-editor or ~cc-editor@1.2".into(),
            FieldCheck::ConvergenceClass => {
                "a class such as repo:pull-request, namespace and name".into()
            }
            FieldCheck::Scope => scope::SCOPE_REQUIREMENT.into(),
            FieldCheck::List { min: 0, max, .. } => format!("an array of at most {max} items"),
            FieldCheck::List { min, max, .. } => format!("an array of {min} to {max} items"),
            FieldCheck::Object(_) | FieldCheck::Payload => "an object".into(),
            FieldCheck::AnyFlagOpen(shape) => {
                let flag_names: Vec<&str> = shape.iter().map(|field| field.name).collect();
                format!(
                    "an object in which {} are not both false",
                    flag_names.join(" and ")
                )
            }
            FieldCheck::IndexIn(list) => format!("the place of one of {list}, counted from 0"),
            FieldCheck::SameAsFrame(field) => format!("the same as the frame's {field}"),
        }
    }
}

fn find_list_fault(
    name: &str,
    node: &JsonNode<'_>,
    (min, max, of): (usize, usize, &'static FieldCheck),
    siblings: &JsonObject<'_>,
    context: &CheckContext<'_>,
) -> Option<FieldFault> {
    let items = match node.as_array() {
        Some(items) if (min..=max).contains(&items.len()) => items,
        Some(_) | None => return Some(FieldCheck::List { min, max, of }.to_fault(name)),
    };
    // The path of an item is built only when it is at fault: most lists are long and valid.
    items.iter().enumerate().find_map(|(index, item)| {
        let fault = of.find_fault("", item, siblings, context)?;
        Some(FieldFault {
            field: format!("{name}[{index}]{}", fault.field),
            requirement: fault.requirement,
        })
    })
}

/// Whether every flag of the shape is present and false.
fn are_all_false(shape: &ObjectShape, node: &JsonNode<'_>) -> bool {
    let is_false = |name: &str| {
        matches!(
            node.as_object().and_then(|object| object.get(name)),
            Some(JsonNode::Bool(false))
        )
    };
    shape.iter().all(|field| is_false(field.name))
}

pub fn is_within_clock_skew(at: UnixMicros, now: UnixMicros) -> bool {
    now.saturating_sub(limits::FRAME_CLOCK_SKEW) <= at
        && at <= now.saturating_add(limits::FRAME_CLOCK_SKEW)
}

/// `~[a-z0-9][a-z0-9._-]{0,63}`, optionally with `@` and a version of `[A-Za-z0-9._+-]{1,64}`.
fn is_drafter(text: &str) -> bool {
    let (name, version) = text.split_once('@').unwrap_or((text, "1"));
    let is_lower_or_digit = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_name = match name.as_bytes() {
        [b'~', first, rest @ ..] => {
            is_lower_or_digit(first)
                && rest.len() <= 63
                && rest
                    .iter()
                    .all(|b| is_lower_or_digit(b) || matches!(b, b'.' | b'_' | b'-'))
        }
        _ => false,
    };
    let is_version = (1..=64).contains(&version.len())
        && version
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+'));
    is_name && is_version
}

/// `namespace:name`, both of printable ASCII without a colon.
fn is_convergence_class(text: &str) -> bool {
    let is_side =
        |side: &str| !side.is_empty() && side.bytes().all(|b| b.is_ascii_graphic() && b != b':');
    text.len() <= limits::FRAME_LABEL_OCTETS
        && text
            .split_once(':')
            .is_some_and(|(namespace, name)| is_side(namespace) && is_side(name))
}
