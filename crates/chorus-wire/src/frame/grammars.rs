//! The grammars and checks of fields that only frames have.

use super::scope::{self, FrameScope, RoleName, ScopeIdent, org_handle};
use crate::contract::{
    CheckedValue, ContractFault, CustomCheck, FieldCheck, FromNode, INSTANT, JsonNode, TextGrammar,
    impl_from_text_node, value_schema,
};
use crate::identity::Handle;
use crate::{limits, time::UnixMicros};
use serde_json::json;
use uuid::Uuid;

pub const UUID4_CHECK: FieldCheck = FieldCheck::Grammar(&TextGrammar {
    accepts: |text| parse_uuid4(text).is_some(),
    requirement: "a UUID of version 4, with hyphens",
    pattern: "^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-4[0-9A-Fa-f]{3}-[89ABab][0-9A-Fa-f]{3}-[0-9A-Fa-f]{12}$",
    refused_pattern: None,
    max_chars: 36,
    format: Some("uuid"),
    example: "3b241101-e2bb-4255-8caf-4136c566a962",
});
pub const INSTANT_CHECK: FieldCheck = FieldCheck::Grammar(&INSTANT);
pub const HANDLE_CHECK: FieldCheck = FieldCheck::Grammar(&Handle::GRAMMAR);

/// A handle that is not an instrument.
pub const SOVEREIGN_CHECK: FieldCheck = FieldCheck::Grammar(&SOVEREIGN);

const SOVEREIGN: TextGrammar = TextGrammar {
    accepts: |text| Handle::parse(text).is_some_and(|handle| !handle.is_instrument()),
    requirement: "the handle of a person or organisation, not of an instrument (~cc-…)",
    refused_pattern: Some("^~(?:cc-|org$)"),
    ..Handle::GRAMMAR
};

/// The handle of an organisation, which is never an instrument.
pub const ORG_CHECK: FieldCheck = FieldCheck::Grammar(&TextGrammar {
    accepts: |text| org_handle(text).is_some_and(|handle| !handle.is_instrument()),
    requirement: "the handle of an organisation, such as ~acme",
    pattern: "^~?[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$",
    refused_pattern: Some("^~?(?:cc-|org$)"),
    example: "~acme",
    ..Handle::GRAMMAR
});

/// The name of an instrument, a session or a tool.
pub const IDENT_CHECK: FieldCheck = FieldCheck::Grammar(&TextGrammar {
    accepts: |text| ScopeIdent::parse(text).is_some(),
    requirement: ScopeIdent::REQUIREMENT,
    pattern: "^[A-Za-z0-9._-]+$",
    refused_pattern: None,
    max_chars: limits::SESSION_OCTETS,
    format: None,
    example: "cc-editor",
});

/// `~name` with an optional `@version`.
pub const DRAFTER_CHECK: FieldCheck = FieldCheck::Grammar(&DRAFTER);

const DRAFTER: TextGrammar = TextGrammar {
    accepts: is_drafter,
    requirement: "an instrument such as ~cc-editor or ~cc-editor@1.2",
    pattern: "^~[a-z0-9][a-z0-9._-]{0,63}(?:@[A-Za-z0-9._+-]{1,64})?$",
    refused_pattern: None,
    max_chars: 130,
    format: None,
    example: "~cc-editor@1.2",
};

/// `namespace:name`.
pub const CONVERGENCE_CLASS_CHECK: FieldCheck = FieldCheck::Grammar(&TextGrammar {
    accepts: is_convergence_class,
    requirement: "a class such as repo:pull-request, namespace and name",
    pattern: "^[!-9;-~]+:[!-9;-~]+$",
    refused_pattern: None,
    max_chars: limits::FRAME_LABEL_OCTETS,
    format: None,
    example: "repo:pull-request",
});

pub const SCOPE_CHECK: FieldCheck = FieldCheck::Grammar(&TextGrammar {
    accepts: |text| FrameScope::parse(text).is_some(),
    requirement: scope::SCOPE_REQUIREMENT,
    pattern: scope::SCOPE_PATTERN,
    refused_pattern: Some(scope::RESERVED_SCOPE_PATTERN),
    max_chars: limits::FRAME_PATH_OCTETS,
    format: None,
    example: "~alice",
});

pub const ROLE_CHECK: FieldCheck = FieldCheck::Grammar(&TextGrammar {
    accepts: |text| RoleName::parse(text).is_some(),
    requirement: "a word of lower-case letters, digits, '.', '_' and '-', at most 64 octets long",
    pattern: "^[a-z0-9][a-z0-9._-]{0,63}$",
    refused_pattern: None,
    max_chars: limits::ROLE_OCTETS,
    format: None,
    example: "reviewer",
});

/// A timestamp near the hub's clock, if the context has a clock (FRM-10, R-49).
pub const RECENT_CHECK: FieldCheck = FieldCheck::Custom(&CustomCheck {
    find_fault: |value| {
        let at = value.node.as_text().and_then(UnixMicros::parse);
        let now = value.context.now;
        let is_recent = at.is_some_and(|at| now.is_none_or(|now| is_within_clock_skew(at, now)));
        (!is_recent).then(|| ContractFault::invalid("", RECENT_REQUIREMENT))
    },
    schema: |_| {
        json!({
            "type": "string", "format": "date-time", "pattern": INSTANT.pattern, "examples": [INSTANT.example],
        })
    },
    nested: &[],
});

const RECENT_REQUIREMENT: &str =
    "an RFC 3339 time with its zone, within 24 hours of the hub's clock";

/// An index into the sibling list `options`, counted from 0 (FRM-40).
pub const RECOMMENDED_INDEX_CHECK: FieldCheck = FieldCheck::Custom(&CustomCheck {
    find_fault: |value| {
        let options = value.siblings.get("options").and_then(JsonNode::as_array);
        let count = options.map_or(0, <[_]>::len) as u64;
        let is_index = value.node.as_u64().is_some_and(|index| index < count);
        (!is_index)
            .then(|| ContractFault::invalid("", "the place of one of options, counted from 0"))
    },
    schema: |_| json!({"type": "integer", "minimum": 0, "maximum": 3}),
    nested: &[],
});

/// The same value as the frame's `acted_by`.
pub const SAME_ACTED_BY_CHECK: FieldCheck = FieldCheck::Custom(&CustomCheck {
    find_fault: |value| find_difference(value, "acted_by", &SOVEREIGN),
    schema: |refs| value_schema(&SOVEREIGN_CHECK, refs),
    nested: &[],
});

/// The same value as the frame's `drafted_with`.
pub const SAME_DRAFTED_WITH_CHECK: FieldCheck = FieldCheck::Custom(&CustomCheck {
    find_fault: |value| find_difference(value, "drafted_with", &DRAFTER),
    schema: |refs| value_schema(&DRAFTER_CHECK, refs),
    nested: &[],
});

fn find_difference(
    value: &CheckedValue<'_, '_>,
    field: &str,
    grammar: &TextGrammar,
) -> Option<ContractFault> {
    let text = value.node.as_text().filter(|text| (grammar.accepts)(text));
    let is_same = text.is_some_and(|text| {
        // A payload that is parsed alone has no frame to compare with.
        value
            .context
            .frame
            .is_none_or(|frame| frame.get(field).and_then(JsonNode::as_text) == Some(text))
    });
    (!is_same).then(|| ContractFault::invalid("", format!("the same as the frame's {field}")))
}

/// The payload. Its shape depends on the kind and is checked in a later step. R-44: another type than an object is
/// `payload-kind-mismatch`. R-53: null is `field-invalid`.
pub const PAYLOAD_CHECK: FieldCheck = FieldCheck::Custom(&CustomCheck {
    find_fault: |value| {
        value
            .node
            .is_null()
            .then(|| ContractFault::invalid("", "an object"))
    },
    schema: |_| json!({"type": "object"}),
    nested: &[],
});

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

/// A hyphenated UUID in any letter case, of version 4 and of the RFC 4122 variant, without which the version has
/// no meaning.
pub fn parse_uuid4(text: &str) -> Option<Uuid> {
    let id = if text.len() == 36 {
        Uuid::try_parse(text).ok()?
    } else {
        return None;
    };
    let is_version_4 = id.get_version_num() == 4 && id.get_variant() == uuid::Variant::RFC4122;
    is_version_4.then_some(id)
}

impl FromNode for Uuid {
    fn from_node(node: Option<&JsonNode<'_>>) -> Option<Self> {
        parse_uuid4(node?.as_text()?)
    }
}

impl_from_text_node!(
    Handle,
    FrameScope,
    RoleName,
    ScopeIdent,
    super::kind::FrameKind,
    super::draft::ComputeLocation,
    super::draft::ContextCheck,
    super::payload::EventClass,
    super::payload::DiagnosticSeverity,
    super::payload::IntentUrgency,
);
