//! One description per request: from a `wire_object!` come the type, the strict parser, the errors and the JSON Schema.
//!
//! A body is parsed once into a tree that borrows from it (`json_parser`, `json_tree`), checked against its shape
//! (`object_shape`, `field_check`) and converted to its type (`from_node`). The published schema is made from the same
//! shape (`json_schema`), so that the two cannot disagree.

mod fault;
mod field_check;
mod from_node;
mod json_parser;
mod json_schema;
mod json_tree;
mod object_shape;
mod text_grammar;

pub use fault::{ContractFault, FaultKind, clip_key};
pub use field_check::{
    CheckContext, CheckedValue, CustomCheck, FieldCheck, characters, integer_between, list_of,
    octets, printable, single_line, visible_line,
};
pub(crate) use from_node::impl_from_text_node;
pub use from_node::{FromNode, RawJson};
pub use json_schema::{SchemaRefs, list_nested_shapes, object_schema, value_schema};
pub use json_tree::{JsonNode, JsonObject, JsonValue, ShapeOrderReader};
pub use object_shape::{
    FieldPresence, FieldShape, ObjectRule, ObjectShape, UnknownFields, check_object, list_faults,
};
pub use text_grammar::{
    CALLBACK_URL, HTTP_URL, INSTANT, LengthUnit, OPAQUE_ID, RefusedCharacters, TextGrammar,
    UTC_INSTANT, is_http_url, is_invisible,
};

/// An object with a shape.
pub trait WireObject: Sized {
    const SHAPE: &'static ObjectShape;

    /// Converts an object that satisfies the shape.
    fn from_object(object: &JsonObject<'_>) -> Option<Self>;
}

/// The object that a body is.
pub fn parse_root<'a>(body: &'a [u8]) -> Result<JsonNode<'a>, ContractFault> {
    let text =
        std::str::from_utf8(body).map_err(|_| ContractFault::invalid_json("it is not UTF-8"))?;
    let node = JsonNode::parse(text)?;
    match node.value {
        JsonValue::Object(_) => Ok(node),
        JsonValue::Null
        | JsonValue::Bool(_)
        | JsonValue::Number
        | JsonValue::Text(_)
        | JsonValue::Array(_) => Err(ContractFault::not_an_object()),
    }
}

/// Parses and checks a body.
pub fn parse_body<T: WireObject>(body: &[u8]) -> Result<T, ContractFault> {
    parse_node(&parse_root(body)?)
}

/// Checks a parsed value and converts it.
pub fn parse_node<T: WireObject>(node: &JsonNode<'_>) -> Result<T, ContractFault> {
    let object = node
        .as_object()
        .ok_or_else(|| ContractFault::invalid("", "an object"))?;
    parse_object(object)
}

/// Checks an object and converts it.
pub fn parse_object<T: WireObject>(object: &JsonObject<'_>) -> Result<T, ContractFault> {
    check_object(T::SHAPE, object, &CheckContext::default())?;
    convert_object(object)
}

fn convert_object<T: WireObject>(object: &JsonObject<'_>) -> Result<T, ContractFault> {
    // The shape was satisfied, so this is a shape that is weaker than its type: a fault of the hub, told as one of the body.
    T::from_object(object).ok_or_else(|| ContractFault::invalid("", "another value"))
}

/// The Rust type of a field.
#[doc(hidden)]
#[macro_export]
macro_rules! field_type {
    (required $value:ty) => { $value };
    (optional $value:ty) => { Option<$value> };
    (nullable $value:ty) => { Option<$value> };
}

#[doc(hidden)]
#[macro_export]
macro_rules! field_presence {
    (required) => {
        $crate::contract::FieldPresence::Required
    };
    (optional) => {
        $crate::contract::FieldPresence::Optional
    };
    (nullable) => {
        $crate::contract::FieldPresence::Nullable
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! unknown_fields {
    (refuses) => {
        $crate::contract::UnknownFields::Refused
    };
    (allows) => {
        $crate::contract::UnknownFields::Allowed
    };
}

/// The name of an object in published documents: its own, or the one given after `as`.
#[doc(hidden)]
#[macro_export]
macro_rules! published_name {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $published:literal) => {
        $published
    };
}

/// Lets `utoipa` refer to a wire object by its published name. The schema itself comes from the shape: `utoipa` cannot
/// express all of it, so the server puts it into the document.
#[doc(hidden)]
#[macro_export]
macro_rules! impl_to_schema {
    ($name:ty) => {
        $crate::impl_to_schema!($name, <$name as $crate::contract::WireObject>::SHAPE.name);
    };
    ($name:ty, $published:expr) => {
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::RefOr::T(utoipa::openapi::schema::Schema::default())
            }
        }

        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                $published.into()
            }
        }
    };
}

/// Defines an object of the wire: its struct, its shape and the conversion from a checked JSON tree.
///
/// ```
/// chorus_wire::wire_object! {
///     /// What it is, for readers of the API.
///     NewRoom as "Room", refuses unknown, example r#"{"name": "general"}"# => {
///         /// What the field means.
///         required name: String = chorus_wire::contract::printable(1, 256);
///         optional topic: String = chorus_wire::contract::printable(1, 256);
///     }
/// }
/// let room: NewRoom = chorus_wire::contract::parse_body(br#"{"name": "general"}"#).unwrap();
/// assert_eq!(room.name, "general");
/// ```
#[macro_export]
macro_rules! wire_object {
    ($(#[doc = $about:literal])* $name:ident $(as $published:literal)?, $unknown:ident unknown
     $(, rules [$($rule:expr),*])? $(, example $example:literal)? => {
        $($(#[doc = $doc:literal])* $need:ident $field:ident: $value:ty = $check:expr;)+
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
        pub struct $name {
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "chorus_wire::contract::FromNode::is_absent")]
                pub $field: $crate::field_type!($need $value),
            )+
        }

        impl $crate::contract::WireObject for $name {
            const SHAPE: &'static $crate::contract::ObjectShape = &$crate::contract::ObjectShape {
                name: $crate::published_name!($name $($published)?),
                about: concat!($($about),*),
                fields: &[$($crate::contract::FieldShape {
                    name: stringify!($field),
                    presence: $crate::field_presence!($need),
                    about: concat!($($doc),*),
                    check: $check,
                },)+],
                unknown: $crate::unknown_fields!($unknown),
                rules: &[$($($rule),*)?],
                example: concat!($($example)?),
            };

            fn from_object(object: &$crate::contract::JsonObject<'_>) -> Option<Self> {
                let mut fields = object.in_shape_order();
                Some(Self { $($field: $crate::contract::FromNode::from_node(fields.next_field(stringify!($field)))?,)+ })
            }
        }

        $crate::impl_to_schema!($name);

        impl $crate::contract::FromNode for $name {
            fn from_node(node: Option<&$crate::contract::JsonNode<'_>>) -> Option<Self> {
                <Self as $crate::contract::WireObject>::from_object(node?.as_object()?)
            }
        }
    };
}
