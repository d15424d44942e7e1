//! What a field's value may be: the checks of which shapes are made.

use super::from_node::parse_uuid4;
use super::json_tree::{JsonNode, JsonObject};
use super::object_shape::{FieldFault, ObjectShape, find_invalid};
use super::scope::{self, FrameScope};
use crate::{identity::Handle, limits, time::UnixMicros};

/// A constraint on one value. Lengths are octets (FRM-28).
#[derive(Debug)]
pub enum FieldCheck {
    Text {
        least: usize,
        most: usize,
    },
    OneOf(&'static [&'static str]),
    Integer {
        least: u64,
        most: u64,
    },
    Bool,
    Uuid4,
    Instant,
    /// An instant near the hub's clock, where there is a clock (FRM-10, R-49).
    Recent,
    Handle,
    /// A handle that is not an instrument's.
    Sovereign,
    /// `~name` with an optional `@version`.
    Drafter,
    /// `namespace:name`.
    ConvergenceClass,
    Scope,
    List {
        least: usize,
        most: usize,
        of: &'static FieldCheck,
    },
    Object(&'static ObjectShape),
    /// An object of flags that are true when absent, of which one must be (FRM-41).
    AnyFlagOpen(&'static ObjectShape),
    /// The place of an item in the list beside it, counted from 0 (FRM-40).
    IndexIn(&'static str),
    /// The frame's own field of that name again.
    SameAsFrame(&'static str),
    /// The payload: its shape depends on the kind and is held in a step of its own.
    Payload,
}

/// Whether a value has fields of its own.
pub enum NestedShape {
    OneObject(&'static ObjectShape),
    EachItem(&'static ObjectShape),
    NoFields,
}

/// What else a check may look at.
#[derive(Default)]
pub struct CheckContext<'a> {
    /// The frame around a payload.
    pub frame: Option<&'a JsonObject<'a>>,
    pub now: Option<UnixMicros>,
}

pub const fn text_between(least: usize, most: usize) -> FieldCheck {
    FieldCheck::Text { least, most }
}

pub const fn integer_between(least: u64, most: u64) -> FieldCheck {
    FieldCheck::Integer { least, most }
}

impl FieldCheck {
    /// The fault of a value whose field is called `name` and stands in `beside`.
    pub fn find_fault(
        &self,
        name: &str,
        node: &JsonNode<'_>,
        siblings: &JsonObject<'_>,
        context: &CheckContext<'_>,
    ) -> Option<FieldFault> {
        let text = node.as_text();
        let good = match self {
            FieldCheck::List { least, most, of } => {
                return find_list_fault(name, node, (*least, *most, of), siblings, context);
            }
            FieldCheck::Object(shape) => return self.find_object_fault(name, shape, node, context),
            FieldCheck::AnyFlagOpen(shape) => {
                match self.find_object_fault(name, shape, node, context) {
                    None => !are_all_false(shape, node),
                    fault => return fault,
                }
            }
            FieldCheck::Text { least, most } => {
                text.is_some_and(|text| (*least..=*most).contains(&text.len()))
            }
            FieldCheck::OneOf(words) => text.is_some_and(|text| words.contains(&text)),
            FieldCheck::Integer { least, most } => {
                matches!(node, JsonNode::Unsigned(n) if (*least..=*most).contains(n))
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
                matches!(node, JsonNode::Unsigned(place) if *place < items as u64)
            }
            // A payload read on its own has no frame to agree with.
            FieldCheck::SameAsFrame(field) => text.is_some_and(|text| {
                context
                    .frame
                    .is_none_or(|frame| frame.get(field).and_then(JsonNode::as_text) == Some(text))
            }),
            // Another value than an object is another error, but null is no payload at all.
            FieldCheck::Payload => !matches!(node, JsonNode::Null),
        };
        (!good).then(|| self.to_fault(name))
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

    /// The end of the sentence “it must be …”.
    fn requirement(&self) -> String {
        match self {
            FieldCheck::Text { least: 0, most } => format!("a string of at most {most} octets"),
            FieldCheck::Text { least, most } => format!("a string of {least} to {most} octets"),
            FieldCheck::OneOf(words) => format!("one of {}", words.join(", ")),
            FieldCheck::Integer { least, most } => format!("a whole number from {least} to {most}"),
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
            FieldCheck::List { least: 0, most, .. } => format!("an array of at most {most} items"),
            FieldCheck::List { least, most, .. } => format!("an array of {least} to {most} items"),
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
    (least, most, of): (usize, usize, &'static FieldCheck),
    siblings: &JsonObject<'_>,
    context: &CheckContext<'_>,
) -> Option<FieldFault> {
    let items = match node.as_array() {
        Some(items) if (least..=most).contains(&items.len()) => items,
        Some(_) | None => return Some(FieldCheck::List { least, most, of }.to_fault(name)),
    };
    // The name of an item is made only once it is at fault: most lists are long and right.
    items.iter().enumerate().find_map(|(place, item)| {
        let fault = of.find_fault("", item, siblings, context)?;
        Some(FieldFault {
            field: format!("{name}[{place}]{}", fault.field),
            requirement: fault.requirement,
        })
    })
}

/// Every flag of the shape is there and false.
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

/// `~[a-z0-9][a-z0-9._-]{0,63}`, then perhaps `@` and a version of printable letters.
fn is_drafter(text: &str) -> bool {
    let (name, version) = text.split_once('@').unwrap_or((text, "1"));
    let lower = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let named = match name.as_bytes() {
        [b'~', first, rest @ ..] => {
            lower(first)
                && rest.len() <= 63
                && rest
                    .iter()
                    .all(|b| lower(b) || matches!(b, b'.' | b'_' | b'-'))
        }
        _ => false,
    };
    let versioned = (1..=64).contains(&version.len())
        && version
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+'));
    named && versioned
}

/// Two sides of printable ASCII around one colon.
fn is_convergence_class(text: &str) -> bool {
    let side =
        |side: &str| !side.is_empty() && side.bytes().all(|b| b.is_ascii_graphic() && b != b':');
    text.len() <= limits::FRAME_LABEL_OCTETS
        && text
            .split_once(':')
            .is_some_and(|(namespace, name)| side(namespace) && side(name))
}
