//! What a field's value may be: the checks of which shapes are made.

use super::held::uuid4;
use super::read::{Node, Object};
use super::scope::{self, Scope};
use super::shape::{Fault, Shape, invalid};
use crate::{identity::Handle, limits, time::Micros};

/// A constraint on one value. Lengths are octets (FRM-28).
#[derive(Debug)]
pub enum Check {
    Text {
        least: usize,
        most: usize,
    },
    OneOf(&'static [&'static str]),
    Whole {
        least: u64,
        most: u64,
    },
    Flag,
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
    Class,
    Scope,
    List {
        least: usize,
        most: usize,
        of: &'static Check,
    },
    Object(&'static Shape),
    /// An object of flags that are true when absent, of which one must be (FRM-41).
    OpenDoor(&'static Shape),
    /// The place of an item in the list beside it, counted from 0 (FRM-40).
    PlaceIn(&'static str),
    /// The frame's own field of that name again.
    Same(&'static str),
    /// The payload: its shape depends on the kind and is held in a step of its own.
    Payload,
}

/// Whether a value has fields of its own.
pub enum Inner {
    One(&'static Shape),
    Each(&'static Shape),
    Nothing,
}

/// What else a check may look at.
#[derive(Default)]
pub struct Setting<'a> {
    /// The frame around a payload.
    pub frame: Option<&'a Object<'a>>,
    pub now: Option<Micros>,
}

pub const fn text(least: usize, most: usize) -> Check {
    Check::Text { least, most }
}

pub const fn whole(least: u64, most: u64) -> Check {
    Check::Whole { least, most }
}

impl Check {
    /// The fault of a value whose field is called `name` and stands in `beside`.
    pub fn fault(
        &self,
        name: &str,
        node: &Node<'_>,
        beside: &Object<'_>,
        setting: &Setting<'_>,
    ) -> Option<Fault> {
        let text = node.text();
        let good = match self {
            Check::List { least, most, of } => {
                return list_fault(name, node, (*least, *most, of), beside, setting);
            }
            Check::Object(shape) => return self.object_fault(name, shape, node, setting),
            Check::OpenDoor(shape) => match self.object_fault(name, shape, node, setting) {
                None => !all_shut(shape, node),
                fault => return fault,
            },
            Check::Text { least, most } => {
                text.is_some_and(|text| (*least..=*most).contains(&text.len()))
            }
            Check::OneOf(words) => text.is_some_and(|text| words.contains(&text)),
            Check::Whole { least, most } => {
                matches!(node, Node::Whole(n) if (*least..=*most).contains(n))
            }
            Check::Flag => matches!(node, Node::Flag(_)),
            Check::Uuid4 => text.and_then(uuid4).is_some(),
            Check::Instant => text.and_then(Micros::parse).is_some(),
            Check::Recent => {
                let at = text.and_then(Micros::parse);
                at.is_some_and(|at| setting.now.is_none_or(|now| is_near(at, now)))
            }
            Check::Handle => text.and_then(Handle::parse).is_some(),
            Check::Sovereign => text
                .and_then(Handle::parse)
                .is_some_and(|handle| !handle.is_instrument()),
            Check::Drafter => text.is_some_and(is_drafter),
            Check::Class => text.is_some_and(is_class),
            Check::Scope => text.and_then(Scope::parse).is_some(),
            Check::PlaceIn(list) => {
                let items = beside.get(list).and_then(Node::list).map_or(0, <[_]>::len);
                matches!(node, Node::Whole(place) if *place < items as u64)
            }
            // A payload read on its own has no frame to agree with.
            Check::Same(field) => text.is_some_and(|text| {
                setting
                    .frame
                    .is_none_or(|frame| frame.get(field).and_then(Node::text) == Some(text))
            }),
            // Another value than an object is another error, but null is no payload at all.
            Check::Payload => !matches!(node, Node::Null),
        };
        (!good).then(|| self.wrong(name))
    }

    pub fn inner(&self) -> Inner {
        match self {
            Check::Object(shape) | Check::OpenDoor(shape) => Inner::One(shape),
            Check::List {
                of: Check::Object(shape),
                ..
            } => Inner::Each(shape),
            Check::List { .. }
            | Check::Text { .. }
            | Check::OneOf(_)
            | Check::Whole { .. }
            | Check::Flag
            | Check::Uuid4
            | Check::Instant
            | Check::Recent
            | Check::Handle
            | Check::Sovereign
            | Check::Drafter
            | Check::Class
            | Check::Scope
            | Check::PlaceIn(_)
            | Check::Same(_)
            | Check::Payload => Inner::Nothing,
        }
    }

    fn object_fault(
        &self,
        name: &str,
        shape: &Shape,
        node: &Node<'_>,
        setting: &Setting<'_>,
    ) -> Option<Fault> {
        let Some(object) = node.object() else {
            return Some(self.wrong(name));
        };
        let inner = invalid(shape, object, setting)?;
        Some(Fault {
            field: format!("{name}.{}", inner.field),
            must: inner.must,
        })
    }

    fn wrong(&self, name: &str) -> Fault {
        Fault {
            field: name.to_owned(),
            must: self.must(),
        }
    }

    /// The end of the sentence “it must be …”.
    fn must(&self) -> String {
        match self {
            Check::Text { least: 0, most } => format!("a string of at most {most} octets"),
            Check::Text { least, most } => format!("a string of {least} to {most} octets"),
            Check::OneOf(words) => format!("one of {}", words.join(", ")),
            Check::Whole { least, most } => format!("a whole number from {least} to {most}"),
            Check::Flag => "true or false".into(),
            Check::Uuid4 => "a UUID of version 4, with hyphens".into(),
            Check::Instant => "an RFC 3339 time with its zone".into(),
            Check::Recent => {
                "an RFC 3339 time with its zone, within 24 hours of the hub's clock".into()
            }
            Check::Handle => "a handle such as ~alice, in lower case".into(),
            Check::Sovereign => {
                "the handle of a person or organisation, not of an instrument (~cc-…)".into()
            }
            Check::Drafter => "an instrument such as ~cc-editor or ~cc-editor@1.2".into(),
            Check::Class => "a class such as repo:pull-request, namespace and name".into(),
            Check::Scope => scope::MUST.into(),
            Check::List { least: 0, most, .. } => format!("an array of at most {most} items"),
            Check::List { least, most, .. } => format!("an array of {least} to {most} items"),
            Check::Object(_) | Check::Payload => "an object".into(),
            Check::OpenDoor(shape) => {
                let doors: Vec<&str> = shape.iter().map(|field| field.name).collect();
                format!(
                    "an object in which {} are not both false",
                    doors.join(" and ")
                )
            }
            Check::PlaceIn(list) => format!("the place of one of {list}, counted from 0"),
            Check::Same(field) => format!("the same as the frame's {field}"),
        }
    }
}

fn list_fault(
    name: &str,
    node: &Node<'_>,
    (least, most, of): (usize, usize, &'static Check),
    beside: &Object<'_>,
    setting: &Setting<'_>,
) -> Option<Fault> {
    let items = match node.list() {
        Some(items) if (least..=most).contains(&items.len()) => items,
        Some(_) | None => return Some(Check::List { least, most, of }.wrong(name)),
    };
    // The name of an item is made only once it is at fault: most lists are long and right.
    items.iter().enumerate().find_map(|(place, item)| {
        let fault = of.fault("", item, beside, setting)?;
        Some(Fault {
            field: format!("{name}[{place}]{}", fault.field),
            must: fault.must,
        })
    })
}

/// Every flag of the shape is there and false.
fn all_shut(shape: &Shape, node: &Node<'_>) -> bool {
    let shut = |name: &str| {
        matches!(
            node.object().and_then(|object| object.get(name)),
            Some(Node::Flag(false))
        )
    };
    shape.iter().all(|field| shut(field.name))
}

pub fn is_near(at: Micros, now: Micros) -> bool {
    now.minus(limits::FRAME_CLOCK_SKEW) <= at && at <= now.plus(limits::FRAME_CLOCK_SKEW)
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
fn is_class(text: &str) -> bool {
    let side =
        |side: &str| !side.is_empty() && side.bytes().all(|b| b.is_ascii_graphic() && b != b':');
    text.len() <= limits::FRAME_LABEL_OCTETS
        && text
            .split_once(':')
            .is_some_and(|(namespace, name)| side(namespace) && side(name))
}
