//! Object shapes as data, and the check of a JSON object against its shape.
//!
//! Of several faults one is reported: unknown fields before missing ones, missing ones before invalid ones,
//! each over the whole object including nested ones. Of unknown fields it is the first written one, an object's own before
//! nested ones; of missing and of invalid fields the first in the order of the shape.

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

/// The fields of an object, in the order in which faults are reported.
pub type ObjectShape = [FieldShape];

/// Returns the first fault; `path` is the prefix of its field name.
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

/// A faulty field, named relative to the checked object, and what it must be.
pub struct FieldFault {
    pub field: String,
    pub requirement: String,
}

fn find_unknown(shape: &ObjectShape, object: &JsonObject<'_>) -> Option<String> {
    let is_unknown = |key: &str| shape.iter().all(|field| field.name != key);
    let own_unknown = object.0.iter().find(|(key, _)| is_unknown(key));
    own_unknown
        .map(|(key, _)| clip_key(key).to_owned())
        .or_else(|| search_children(shape, object, find_unknown))
}

/// Goes through the fields in the order of the shape, the nested fields of each included.
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
    // In written order, because unknown fields are reported in that order.
    object.0.iter().find_map(|(key, node)| {
        let field = shape.iter().find(|field| field.name == key)?;
        search_field(field, node, search)
    })
}

/// Searches a nested object, or every object of a list; other values have no fields.
fn search_field(field: &FieldShape, node: &JsonNode<'_>, search: FaultSearch) -> Option<String> {
    match field.check.nested_shape() {
        NestedShape::OneObject(shape) => {
            search(shape, node.as_object()?).map(|inner| format!("{}.{inner}", field.name))
        }
        NestedShape::EachItem(shape) => {
            node.as_array()?
                .iter()
                .enumerate()
                .find_map(|(index, item)| {
                    let inner = search(shape, item.as_object()?)?;
                    Some(format!("{}[{index}].{inner}", field.name))
                })
        }
        NestedShape::NoFields => None,
    }
}

/// The first field in the order of the shape whose value is invalid.
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
