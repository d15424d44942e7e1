//! Object shapes as data, and the check of a JSON object against its shape.
//!
//! Of several faults one is reported: unknown fields before missing ones, missing ones before invalid ones,
//! each over the whole object including nested ones. Of unknown fields it is the first written one, an object's own before
//! nested ones; of missing and of invalid fields the first in the order of the shape. Rules over several fields come last.

use super::fault::ContractFault;
use super::field_check::{CheckContext, CheckedValue, FieldCheck, NestedShape};
use super::json_schema::SchemaRefs;
use super::json_tree::{JsonNode, JsonObject};
use serde_json::Value;

/// One field of an object.
#[derive(Debug)]
pub struct FieldShape {
    pub name: &'static str,
    pub presence: FieldPresence,
    /// The description for readers of the API.
    pub about: &'static str,
    pub check: FieldCheck,
}

impl FieldShape {
    pub const fn required(name: &'static str, about: &'static str, check: FieldCheck) -> Self {
        let presence = FieldPresence::Required;
        Self {
            name,
            presence,
            about,
            check,
        }
    }

    pub const fn optional(name: &'static str, about: &'static str, check: FieldCheck) -> Self {
        let presence = FieldPresence::Optional;
        Self {
            name,
            presence,
            about,
            check,
        }
    }
}

/// Whether a field must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldPresence {
    Required,
    /// May be absent; `null` is refused.
    Optional,
    /// May be absent or `null`.
    Nullable,
}

/// What happens to fields that the shape does not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownFields {
    Refused,
    /// Accepted: ignored, or kept with the object.
    Allowed,
}

/// An object: its name in published documents, its fields in the order in which faults are reported, and its rules.
#[derive(Debug)]
pub struct ObjectShape {
    pub name: &'static str,
    pub about: &'static str,
    pub fields: &'static [FieldShape],
    pub unknown: UnknownFields,
    pub rules: &'static [ObjectRule],
    /// A valid object as JSON; empty if the object is only a part of others.
    pub example: &'static str,
}

impl ObjectShape {
    /// The check of a field, for another object that has the same field. Of an unknown field it does not compile where it
    /// is used, which is in constants.
    pub const fn check_of(&self, name: &str) -> FieldCheck {
        let mut index = 0;
        while index < self.fields.len() {
            if is_same_text(self.fields[index].name, name) {
                return self.fields[index].check;
            }
            index += 1;
        }
        panic!("the object has no such field");
    }
}

/// `==` of texts is not yet const.
const fn is_same_text(left: &str, right: &str) -> bool {
    let left = left.as_bytes();
    let right = right.as_bytes();
    if left.len() != right.len() {
        return false;
    }
    let mut index = 0;
    while index < left.len() {
        if left[index] != right[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// A rule over several fields of an object.
#[derive(Debug)]
pub struct ObjectRule {
    pub find_fault: fn(&JsonObject<'_>) -> Option<ContractFault>,
    /// Adds what JSON Schema can say of the rule to the schema of the object.
    pub describe: fn(&mut Value, SchemaRefs),
}

/// The first fault of the object.
pub fn check_object(
    shape: &ObjectShape,
    object: &JsonObject<'_>,
    context: &CheckContext<'_>,
) -> Result<(), ContractFault> {
    let fault = find_unknown(shape, object)
        .or_else(|| find_missing(shape, object))
        .or_else(|| find_invalid(shape, object, context));
    fault.map_or(Ok(()), Err)
}

/// The faults of an object, for a client that corrects several at once: every unknown field, one fault of each other
/// field, or the broken rules.
pub fn list_faults(
    shape: &ObjectShape,
    object: &JsonObject<'_>,
    context: &CheckContext<'_>,
) -> Vec<ContractFault> {
    let is_known = |key: &str| shape.fields.iter().any(|field| field.name == key);
    let own_unknown = object
        .0
        .iter()
        .filter(|(key, _)| shape.unknown == UnknownFields::Refused && !is_known(key))
        .map(|(key, _)| ContractFault::unknown(key));
    let of_fields = shape
        .fields
        .iter()
        .filter_map(|field| match object.get(field.name) {
            Some(node) => search_field(field, node, find_unknown)
                .or_else(|| search_field(field, node, find_missing))
                .or_else(|| find_invalid_field(field, node, object, context)),
            None => (field.presence == FieldPresence::Required)
                .then(|| ContractFault::missing(field.name)),
        });
    let faults: Vec<ContractFault> = own_unknown.chain(of_fields).collect();
    if !faults.is_empty() {
        return faults;
    }
    let rules = shape.rules.iter();
    rules.filter_map(|rule| (rule.find_fault)(object)).collect()
}

fn find_unknown(shape: &ObjectShape, object: &JsonObject<'_>) -> Option<ContractFault> {
    let is_unknown = |index: usize, key: &str| {
        let is_near = shape
            .fields
            .get(index)
            .is_some_and(|field| field.name == key);
        !is_near && shape.fields.iter().all(|field| field.name != key)
    };
    let own_unknown = match shape.unknown {
        UnknownFields::Refused => object
            .0
            .iter()
            .enumerate()
            .find(|(index, (key, _))| is_unknown(*index, key))
            .map(|(_, field)| field),
        UnknownFields::Allowed => None,
    };
    own_unknown
        .map(|(key, _)| ContractFault::unknown(key))
        .or_else(|| {
            let nested_fields = || {
                let fields = shape.fields.iter();
                fields.filter(|field| field.check.nested_shape().is_some())
            };
            nested_fields().next()?;
            // In written order, because unknown fields are reported in that order.
            object.0.iter().find_map(|(key, node)| {
                let field = nested_fields().find(|field| field.name == key)?;
                search_field(field, node, find_unknown)
            })
        })
}

/// Goes through the fields in the order of the shape, the nested fields of each included.
fn find_missing(shape: &ObjectShape, object: &JsonObject<'_>) -> Option<ContractFault> {
    shape.fields.iter().enumerate().find_map(|(index, field)| {
        match object.get_near(index, field.name) {
            Some(node) => search_field(field, node, find_missing),
            None => (field.presence == FieldPresence::Required)
                .then(|| ContractFault::missing(field.name)),
        }
    })
}

type FaultSearch = fn(&ObjectShape, &JsonObject<'_>) -> Option<ContractFault>;

/// Searches a nested object, or every object of a list; other values have no fields.
fn search_field(
    field: &FieldShape,
    node: &JsonNode<'_>,
    search: FaultSearch,
) -> Option<ContractFault> {
    let fault = match field.check.nested_shape()? {
        NestedShape::Object(shape) => search(shape, node.as_object()?),
        NestedShape::Items(shape) => {
            node.as_array()?
                .iter()
                .enumerate()
                .find_map(|(index, item)| {
                    search(shape, item.as_object()?).map(|fault| fault.inside_item(index))
                })
        }
    };
    fault.map(|fault| fault.inside(field.name))
}

/// The first field in the order of the shape whose value is invalid, then the first broken rule.
pub fn find_invalid(
    shape: &ObjectShape,
    object: &JsonObject<'_>,
    context: &CheckContext<'_>,
) -> Option<ContractFault> {
    let invalid_field = shape.fields.iter().enumerate().find_map(|(index, field)| {
        let node = object.get_near(index, field.name)?;
        find_invalid_field(field, node, object, context)
    });
    invalid_field.or_else(|| {
        shape
            .rules
            .iter()
            .find_map(|rule| (rule.find_fault)(object))
    })
}

fn find_invalid_field(
    field: &FieldShape,
    node: &JsonNode<'_>,
    siblings: &JsonObject<'_>,
    context: &CheckContext<'_>,
) -> Option<ContractFault> {
    if node.is_null() && field.presence == FieldPresence::Nullable {
        return None;
    }
    let value = CheckedValue {
        node,
        siblings,
        context,
    };
    field
        .check
        .find_fault(&value)
        .map(|fault| fault.inside(field.name))
}
