//! Shapes as data, and the one walk that holds an object against its shape.
//!
//! Which fault is told when there are several: unknown fields before missing ones, missing ones before invalid
//! ones, over the whole object with everything inside it. Among unknown fields the first that was written wins, a level's
//! own before those within; among missing and among invalid ones the first in the order of the shape.

use super::error::FrameError;
use super::field_check::{CheckContext, FieldCheck, NestedShape};
use super::json_tree::{JsonNode, JsonObject, clip_key};

/// One field of an object.
#[derive(Debug)]
pub struct FieldShape {
    pub name: &'static str,
    pub required: bool,
    pub check: FieldCheck,
}

/// The fields of an object, in the order in which faults are told.
pub type ObjectShape = [FieldShape];

/// The first fault, its field named from `path` on.
pub fn check_object(
    shape: &ObjectShape,
    object: &JsonObject<'_>,
    path: &str,
    context: &CheckContext<'_>,
) -> Result<(), FrameError> {
    let full_path = |field: String| match path {
        "" => field,
        _ => format!("{path}.{field}"),
    };
    if let Some(field) = find_unknown(shape, object) {
        return Err(FrameError::unknown_field(full_path(field)));
    }
    if let Some(field) = find_missing(shape, object) {
        return Err(FrameError::missing_field(full_path(field)));
    }
    match find_invalid(shape, object, context) {
        Some(fault) => Err(FrameError::invalid_field(
            full_path(fault.field),
            fault.requirement,
        )),
        None => Ok(()),
    }
}

/// A field at fault, named from the object in hand, and what it must be.
pub struct FieldFault {
    pub field: String,
    pub requirement: String,
}

fn find_unknown(shape: &ObjectShape, object: &JsonObject<'_>) -> Option<String> {
    let is_unknown = |key: &str| shape.iter().all(|field| field.name != key);
    let own = object.0.iter().find(|(key, _)| is_unknown(key));
    own.map(|(key, _)| clip_key(key).to_owned())
        .or_else(|| search_children(shape, object, find_unknown))
}

/// In the order of the shape, so a field's own absence stands at its place among the faults inside its neighbours.
fn find_missing(shape: &ObjectShape, object: &JsonObject<'_>) -> Option<String> {
    shape.iter().find_map(|field| match object.get(field.name) {
        Some(node) => search_field(field, node, find_missing),
        None => field.required.then(|| field.name.to_owned()),
    })
}

type FaultSearch = fn(&ObjectShape, &JsonObject<'_>) -> Option<String>;

fn search_children(
    shape: &ObjectShape,
    object: &JsonObject<'_>,
    search: FaultSearch,
) -> Option<String> {
    // By the order of writing, since that is what unknown fields are told by.
    object.0.iter().find_map(|(key, node)| {
        let field = shape.iter().find(|field| field.name == key)?;
        search_field(field, node, search)
    })
}

/// Goes on in an object, or in every object of a list; other values have no fields.
fn search_field(field: &FieldShape, node: &JsonNode<'_>, search: FaultSearch) -> Option<String> {
    match field.check.nested_shape() {
        NestedShape::OneObject(shape) => {
            search(shape, node.as_object()?).map(|inner| format!("{}.{inner}", field.name))
        }
        NestedShape::EachItem(shape) => {
            node.as_array()?
                .iter()
                .enumerate()
                .find_map(|(place, item)| {
                    let inner = search(shape, item.as_object()?)?;
                    Some(format!("{}[{place}].{inner}", field.name))
                })
        }
        NestedShape::NoFields => None,
    }
}

/// The first field, in the order of the shape, whose value it may not have.
pub fn find_invalid(
    shape: &ObjectShape,
    object: &JsonObject<'_>,
    context: &CheckContext<'_>,
) -> Option<FieldFault> {
    shape.iter().find_map(|field| {
        let node = object.get(field.name)?;
        field.check.find_fault(field.name, node, object, context)
    })
}
