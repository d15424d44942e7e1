//! The published schemas and the parsers agree: a value that one accepts, the other accepts too.

#![expect(
    clippy::unwrap_used,
    reason = "a failure in a test helper fails the test"
)]

mod generate;

use chorus_wire::channel::callback_event::{CALLBACK_EVENTS, CallbackPost};
use chorus_wire::contract::{CheckContext, JsonNode, check_object};
use chorus_wire::frame::{Frame, FramePayload, FrameSubmission};
use chorus_wire::schemas;
use generate::{junk, values_of};
use jsonschema::Validator;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};

const CASES: usize = 3_000;

/// What JSON Schema cannot say: a refusal with one of these texts is no disagreement.
const BEYOND_SCHEMAS: [&str; 7] = [
    // Any value, but no NUL anywhere in it.
    "a value without NUL characters",
    // Two fields are compared.
    "recipient_handle another",
    "another than from_owner",
    "the place of one of options",
    "the same as the frame's",
    // Letters beyond ASCII are told from signs by tables, not by a pattern.
    "letters and digits, with",
    // A pattern without flags cannot name characters past U+FFFF.
    "control or invisible characters",
];

fn definitions() -> Value {
    Value::Object(
        schemas::request_schemas("#/$defs/")
            .into_iter()
            .collect::<Map<_, _>>(),
    )
}

/// The keywords that the schemas have beside those of JSON Schema: sizes in octets and in bytes of JSON.
struct MaxOctets(usize);

impl<'i> jsonschema::Keyword<'i> for MaxOctets {
    fn validate(&self, instance: &'i Value) -> Result<(), jsonschema::ValidationError<'i>> {
        if self.is_valid(instance) {
            Ok(())
        } else {
            Err(jsonschema::ValidationError::custom("too many octets"))
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        let octets = instance
            .as_str()
            .map_or_else(|| instance.to_string().len(), str::len);
        octets <= self.0
    }
}

fn make_max_octets<'a>(
    _: &'a Map<String, Value>,
    limit: &'a Value,
    _: jsonschema::paths::Location,
) -> Result<Box<dyn for<'i> jsonschema::Keyword<'i>>, jsonschema::ValidationError<'a>> {
    let limit = limit.as_u64().unwrap_or(u64::MAX) as usize;
    Ok(Box::new(MaxOctets(limit)))
}

fn validator(name: &str, definitions: &Value) -> Validator {
    let document = json!({"$ref": format!("#/$defs/{name}"), "$defs": definitions});
    jsonschema::options()
        .should_validate_formats(false)
        .with_keyword("x-max-octets", make_max_octets)
        .with_keyword("x-max-bytes", make_max_octets)
        .build(&document)
        .unwrap()
}

/// The parser of the object with this name; the error is the sentence that a client gets.
fn parse(name: &str, text: &str) -> Result<(), String> {
    match name {
        "FrameSubmission" => FrameSubmission::parse(text.as_bytes())
            .and_then(|submission| submission.scope().map(drop))
            .map_err(|error| error.message),
        "Frame" => Frame::parse(text).map(drop).map_err(|error| error.message),
        _ if name.ends_with("Frame") => {
            let frame = Frame::parse(text).map_err(|error| error.message)?;
            let kind = FramePayload::shape_of_kind(frame.kind()).name;
            if name == format!("{kind}Frame") {
                Ok(())
            } else {
                Err("it is a frame of another kind".to_owned())
            }
        }
        "CallbackEvent" => CallbackPost::parse(text.as_bytes())
            .map(drop)
            .map_err(|error| error.message),
        _ if CALLBACK_EVENTS.iter().any(|(_, shape)| shape.name == name) => {
            let value: Value = serde_json::from_str(text).unwrap();
            let kind = CALLBACK_EVENTS
                .iter()
                .find(|(kind, _)| value["type"] == *kind);
            match kind {
                Some((_, shape)) if shape.name == name => parse("CallbackEvent", text),
                Some(_) | None => Err("it is another event".to_owned()),
            }
        }
        _ => {
            let shape = schemas::list_shapes()[name];
            let node = JsonNode::parse(text).map_err(|fault| fault.message())?;
            let object = node.as_object().ok_or("it is no object")?;
            check_object(shape, object, &CheckContext::default()).map_err(|fault| fault.message())
        }
    }
}

/// Replaces or removes one field, so that most of the value stays as it was.
fn mutate(value: Value, choice: usize, stray: Value) -> Value {
    let Value::Object(mut map) = value else {
        return stray;
    };
    let keys: Vec<String> = map.keys().cloned().collect();
    if let Some(key) = keys.get(choice % (keys.len() + 1)) {
        match choice % 3 {
            0 => drop(map.remove(key)),
            1 => drop(map.insert(key.clone(), stray)),
            _ => {
                let inner = map.remove(key).unwrap_or_default();
                map.insert(key.clone(), mutate(inner, choice / 3, stray));
            }
        }
    }
    Value::Object(map)
}

fn agree(name: &str, definitions: &Value) -> [usize; 2] {
    let validator = validator(name, definitions);
    let examples = definitions[name]["examples"].as_array().cloned();
    let values = values_of(&definitions[name], definitions);
    let values = match examples {
        Some(examples) => prop_oneof![2 => values, 1 => prop::sample::select(examples)].boxed(),
        None => values,
    };
    let mutated = (values.clone(), any::<usize>(), junk())
        .prop_map(|(value, choice, stray)| mutate(value, choice, stray));
    let values = prop_oneof![2 => values, 1 => mutated];
    let mut runner = TestRunner::deterministic();
    let mut counts = [0; 2];
    for _ in 0..CASES {
        let value = values.new_tree(&mut runner).unwrap().current();
        let text = value.to_string();
        let parsed = parse(name, &text);
        let is_published = validator.is_valid(&value);
        counts[usize::from(is_published)] += 1;
        if parsed.is_ok() == is_published {
            continue;
        }
        let beyond = parsed
            .as_ref()
            .is_err_and(|error| BEYOND_SCHEMAS.iter().any(|text| error.contains(text)));
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|e| e.to_string())
            .collect();
        assert!(
            beyond,
            "{name}: {text}\nparser: {parsed:?}\nschema: {errors:?}"
        );
    }
    counts
}

#[test]
fn every_schema_agrees_with_its_parser() {
    let definitions = definitions();
    for name in definitions.as_object().unwrap().keys() {
        let [refused, accepted] = agree(name, &definitions);
        assert!(
            refused > CASES / 50 && accepted > CASES / 50,
            "{name}: {accepted} accepted and {refused} refused are too few to tell"
        );
    }
}

#[test]
fn every_example_satisfies_its_schema_and_its_parser() {
    let definitions = definitions();
    for (name, schema) in definitions.as_object().unwrap() {
        for example in schema["examples"].as_array().into_iter().flatten() {
            let errors: Vec<String> = validator(name, &definitions)
                .iter_errors(example)
                .map(|error| error.to_string())
                .collect();
            assert!(errors.is_empty(), "{name}: {errors:?}");
            parse(name, &example.to_string()).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}

#[test]
fn every_object_and_field_has_a_description_without_rule_numbers() {
    for (name, shape) in schemas::list_shapes() {
        let fields = shape.fields.iter().map(|field| (field.name, field.about));
        for (field, about) in fields.chain([("", shape.about)]) {
            let about = about.trim();
            assert!(about.ends_with(['.', '?']), "{name}.{field}: {about:?}");
            for internal in ["FRM-", "R-", "ENV-", "TRN-", "CHN-", "JOB-", "[`", "::"] {
                assert!(!about.contains(internal), "{name}.{field}: {about}");
            }
        }
    }
}
