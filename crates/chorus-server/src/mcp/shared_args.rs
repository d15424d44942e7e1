//! Arguments that several tools have.

use chorus_wire::contract::{
    FieldCheck, JsonObject, ObjectShape, UnknownFields, WireObject, integer_between,
};

/// How many rows a page has at most.
pub const fn page_limit(max: usize) -> FieldCheck {
    integer_between(1, max as u64)
}

/// The arguments of a tool that has none.
pub struct NoArguments;

impl WireObject for NoArguments {
    const SHAPE: &'static ObjectShape = &ObjectShape {
        name: "NoArguments",
        about: "",
        fields: &[],
        unknown: UnknownFields::Refused,
        rules: &[],
        example: "",
    };

    fn from_object(_: &JsonObject<'_>) -> Option<Self> {
        Some(Self)
    }
}
