//! Shapes as data, and the one walk that holds an object against its shape.
//!
//! Which fault is told when there are several: unknown fields before missing ones, missing ones before invalid
//! ones, over the whole object with everything inside it. Among unknown fields the first that was written wins, a level's
//! own before those within; among missing and among invalid ones the first in the order of the shape.

use super::check::{Check, Inner, Setting};
use super::error::FrameError;
use super::read::{Node, Object, clipped};

/// One field of an object.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub required: bool,
    pub check: Check,
}

/// The fields of an object, in the order in which faults are told.
pub type Shape = [Field];

/// The first fault, its field named from `path` on.
pub fn hold(
    shape: &Shape,
    object: &Object<'_>,
    path: &str,
    setting: &Setting<'_>,
) -> Result<(), FrameError> {
    let named = |field: String| match path {
        "" => field,
        _ => format!("{path}.{field}"),
    };
    if let Some(field) = unknown(shape, object) {
        return Err(FrameError::unknown(named(field)));
    }
    if let Some(field) = missing(shape, object) {
        return Err(FrameError::missing(named(field)));
    }
    match invalid(shape, object, setting) {
        Some(fault) => Err(FrameError::invalid(named(fault.field), fault.must)),
        None => Ok(()),
    }
}

/// A field at fault, named from the object in hand, and what it must be.
pub struct Fault {
    pub field: String,
    pub must: String,
}

fn unknown(shape: &Shape, object: &Object<'_>) -> Option<String> {
    let strange = |key: &str| shape.iter().all(|field| field.name != key);
    let own = object.0.iter().find(|(key, _)| strange(key));
    own.map(|(key, _)| clipped(key).to_owned())
        .or_else(|| within(shape, object, unknown))
}

/// In the order of the shape, so a field's own absence stands at its place among the faults inside its neighbours.
fn missing(shape: &Shape, object: &Object<'_>) -> Option<String> {
    shape.iter().find_map(|field| match object.get(field.name) {
        Some(node) => inside(field, node, missing),
        None => field.required.then(|| field.name.to_owned()),
    })
}

type Search = fn(&Shape, &Object<'_>) -> Option<String>;

fn within(shape: &Shape, object: &Object<'_>, search: Search) -> Option<String> {
    // By the order of writing, since that is what unknown fields are told by.
    object.0.iter().find_map(|(key, node)| {
        let field = shape.iter().find(|field| field.name == key)?;
        inside(field, node, search)
    })
}

/// Goes on in an object, or in every object of a list; other values have no fields.
fn inside(field: &Field, node: &Node<'_>, search: Search) -> Option<String> {
    match field.check.inner() {
        Inner::One(shape) => {
            search(shape, node.object()?).map(|inner| format!("{}.{inner}", field.name))
        }
        Inner::Each(shape) => node.list()?.iter().enumerate().find_map(|(place, item)| {
            let inner = search(shape, item.object()?)?;
            Some(format!("{}[{place}].{inner}", field.name))
        }),
        Inner::Nothing => None,
    }
}

/// The first field, in the order of the shape, whose value it may not have.
pub fn invalid(shape: &Shape, object: &Object<'_>, setting: &Setting<'_>) -> Option<Fault> {
    shape.iter().find_map(|field| {
        let node = object.get(field.name)?;
        field.check.fault(field.name, node, object, setting)
    })
}
