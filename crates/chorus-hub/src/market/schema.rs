//! Checks a job's input against the schema of the skill: JSON Schema, or the short form
//! `{"text":"string"}` of the jobs document.

use crate::Result;
use chorus_wire::market::skill::SkillOffer;
use chorus_wire::{Error, ErrorCode, limits};
use jsonschema::{PatternOptions, Validator};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

/// The types of the short form and their names in JSON Schema. The document uses `string` and
/// `list`; the others are the remaining JSON types and common names for them.
const SHORT_FORM_TYPES: [(&str, &str); 12] = [
    ("string", "string"),
    ("number", "number"),
    ("float", "number"),
    ("integer", "integer"),
    ("int", "integer"),
    ("boolean", "boolean"),
    ("bool", "boolean"),
    ("array", "array"),
    ("list", "array"),
    ("object", "object"),
    ("dict", "object"),
    ("null", "null"),
];

/// The type of the short form that accepts every value.
const ANY_TYPE: &str = "any";

/// Keywords of JSON Schema. An object without any of them is not accepted as a schema; without this
/// rule every object would be one, and a misspelt short form would accept every input.
const SCHEMA_KEYWORDS: &str = "$schema $ref $defs definitions type enum const properties required additionalProperties patternProperties \
    propertyNames minProperties maxProperties dependentRequired dependentSchemas items prefixItems contains \
    minContains maxContains minItems maxItems uniqueItems minLength maxLength pattern format minimum maximum \
    exclusiveMinimum exclusiveMaximum multipleOf allOf anyOf oneOf not if unevaluatedProperties unevaluatedItems";

/// Reference keywords that are refused: they lead out of the document, or to names whose meaning
/// depends on where they are used.
const UNSUPPORTED_REFERENCES: [&str; 6] = [
    "$id",
    "id",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
];

/// Keywords whose value is an object with names as keys and schemas as values.
const NAMED_SUBSCHEMAS: [&str; 4] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
];

/// A compiled schema, with the number of its parts and patterns.
pub(super) struct CompiledSchema {
    validator: Validator,
    parts: usize,
    patterns: usize,
}

/// Weighs a compiled schema by the most memory that it can take.
#[derive(Clone)]
struct SchemaWeighter;

impl Weighter<String, Arc<CompiledSchema>> for SchemaWeighter {
    fn weight(&self, text: &String, compiled: &Arc<CompiledSchema>) -> u64 {
        let bytes = text.len()
            + compiled.parts * crate::limits::SCHEMA_PART_MEMORY
            + compiled.patterns * crate::limits::PATTERN_MEMORY;
        bytes as u64
    }
}

type SchemaCache = Cache<String, Arc<CompiledSchema>, SchemaWeighter>;

/// One for the process: a compiled schema does not depend on the hub.
static SCHEMA_CACHE: OnceLock<SchemaCache> = OnceLock::new();

/// Sets the size of the cache. The first hub of the process decides.
pub(crate) fn size_schema_cache(max_bytes: u64) {
    SCHEMA_CACHE.get_or_init(|| new_schema_cache(max_bytes));
}

fn schema_cache() -> &'static SchemaCache {
    SCHEMA_CACHE.get_or_init(|| new_schema_cache(crate::limits::COMPILED_SCHEMAS_BYTES))
}

/// In one shard: a schema with many patterns weighs a quarter of the whole cache.
fn new_schema_cache(max_bytes: u64) -> SchemaCache {
    let options = OptionsBuilder::new()
        .estimated_items_capacity(crate::limits::COMPILED_SCHEMAS_EXPECTED)
        .weight_capacity(max_bytes)
        .shards(1)
        .build()
        .expect("all required options are given");
    Cache::with_options(
        options,
        SchemaWeighter,
        DefaultHashBuilder::default(),
        DefaultLifecycle::default(),
    )
}

/// Checks that the schemas of all skills of one request are valid. Compiling takes milliseconds:
/// only for a thread that serves no requests.
pub(super) fn check_skill_schemas(skills: &[SkillOffer]) -> Result<()> {
    let mut budget = SchemaBudget::for_request();
    let mut measured = Vec::new();
    let schemas = skills.iter().flat_map(|skill| {
        [
            ("input_schema", skill, &skill.input_schema),
            ("output_schema", skill, &skill.output_schema),
        ]
    });
    let invalid_schema = |field: &str, skill: &SkillOffer, reason: String| {
        Error::validation(format!("{field} of {}: {reason}", skill.skill_name))
    };
    // All are measured before the first is compiled, so that a refusal costs little.
    for (field, skill, schema) in schemas {
        if let Some(schema) = schema {
            let part = MeasuredSchema::measure(schema, &mut budget)
                .map_err(|reason| invalid_schema(field, skill, reason))?;
            measured.push((field, skill, part));
        }
    }
    for (field, skill, part) in measured {
        part.compile()
            .map_err(|reason| invalid_schema(field, skill, reason))?;
    }
    Ok(())
}

/// Which value of a job is checked: its input (JOB-27), or the output that the worker promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JobValue {
    Input,
    Output,
}

impl JobValue {
    const fn field(self) -> &'static str {
        match self {
            Self::Input => "input_data",
            Self::Output => "output_data",
        }
    }

    const fn verb(self) -> &'static str {
        match self {
            Self::Input => "takes",
            Self::Output => "promises",
        }
    }

    /// A mismatch of an output is a fault of the report, which its worker can mend.
    fn refuse(self, message: String) -> Error {
        match self {
            Self::Input => Error {
                field: Some(self.field().to_owned()),
                ..Error::new(ErrorCode::SkillMismatch, message)
            },
            Self::Output => Error::invalid_field(self.field(), message),
        }
    }
}

/// Checks a value of a job against the schema of its skill. Only for a thread that serves no
/// requests.
pub(super) fn check_value_now(which: JobValue, schema: &Value, value: &Value) -> Result<()> {
    let text = schema.to_string();
    let compiled = match schema_cache().get(&text) {
        Some(compiled) => compiled,
        None => {
            // Registration has compiled it before.
            let compiled = compile_schema(schema).map_err(|message| which.refuse(message))?;
            let compiled = Arc::new(compiled);
            schema_cache().insert(text, compiled.clone());
            compiled
        }
    };
    compiled.check_value(which, value)
}

/// The same on the thread of the caller: the verdict, if the schema is compiled and the check is so short that handing it to another
/// thread would take longer. `None` otherwise.
pub(super) fn check_small_value(
    which: JobValue,
    schema: &Value,
    value: &Value,
) -> Option<Result<()>> {
    let compiled = schema_cache().get(&schema.to_string())?;
    let is_small = compiled.patterns == 0
        && value.to_string().len() <= crate::limits::SMALL_VALUE_BYTES
        && compiled.parts.saturating_mul(count_values(value)) <= crate::limits::SMALL_SCHEMA_WORK;
    is_small.then(|| compiled.check_value(which, value))
}

impl CompiledSchema {
    fn check_value(&self, which: JobValue, value: &Value) -> Result<()> {
        let field = which.field();
        // Each part may have to be compared with each value.
        if self.parts.saturating_mul(count_values(value)) > limits::SCHEMA_WORK {
            return Err(which.refuse(format!(
                "{field} has more values than can be checked against the schema of the skill"
            )));
        }
        self.validator.validate(value).map_err(|mismatch| {
            let path = mismatch.instance_path().as_str().replace('/', ".");
            // The library's message quotes the client's value, which may be long.
            let reason = truncate_message(&mismatch.to_string());
            let verb = which.verb();
            which.refuse(format!(
                "{field}{path} is not what the skill {verb}: {reason}"
            ))
        })
    }
}

/// Shortens a message that may quote a whole document.
fn truncate_message(message: &str) -> String {
    match message.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

/// The number of values in a value, itself included.
fn count_values(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(count_values).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(count_values).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

fn is_schema_keyword(key: &str) -> bool {
    SCHEMA_KEYWORDS.split(' ').any(|keyword| keyword == key)
}

fn compile_schema(schema: &Value) -> std::result::Result<CompiledSchema, String> {
    MeasuredSchema::measure(schema, &mut SchemaBudget::for_request())?.compile()
}

/// What the schemas of one request may have together.
struct SchemaBudget {
    parts_left: usize,
    patterns_left: usize,
}

impl SchemaBudget {
    fn for_request() -> Self {
        Self {
            parts_left: limits::REQUEST_SCHEMA_PARTS,
            patterns_left: limits::REQUEST_PATTERNS,
        }
    }
}

/// A schema within its limits, not compiled yet.
struct MeasuredSchema<'a> {
    /// The JSON Schema, with a short form expanded.
    schema: Cow<'a, Value>,
    parts: usize,
    patterns: usize,
}

impl<'a> MeasuredSchema<'a> {
    fn measure(schema: &'a Value, budget: &mut SchemaBudget) -> std::result::Result<Self, String> {
        let Value::Object(map) = schema else {
            return Err("it must be an object".into());
        };
        let schema = match expand_short_form(map) {
            Some(expanded) => Cow::Owned(expanded),
            None if !map.keys().any(|key| is_schema_keyword(key)) => {
                return Err("it is neither a JSON Schema nor of the form {\"field\": \"type\"} with the types string, number, \
                            integer, boolean, array or list, object or dict"
                    .into());
            }
            None => Cow::Borrowed(schema),
        };
        let mut walker = SchemaWalker {
            root: &schema,
            budget,
            parts: 0,
            patterns: 0,
            unevaluated_count: 0,
            open_references: Vec::new(),
        };
        walker.walk_part(&schema)?;
        let SchemaWalker {
            parts, patterns, ..
        } = walker;
        Ok(Self {
            schema,
            parts,
            patterns,
        })
    }

    fn compile(&self) -> std::result::Result<CompiledSchema, String> {
        // Patterns are matched in linear time and limited in size, so that no skill can exhaust the
        // hub's CPU or memory.
        let pattern = PatternOptions::regex()
            .size_limit(limits::PATTERN_BYTES)
            .dfa_size_limit(limits::PATTERN_BYTES);
        let validator = jsonschema::options()
            .with_pattern_options(pattern)
            .build(&self.schema)
            .map_err(|error| {
                format!(
                    "it is no JSON Schema: {}",
                    truncate_message(&error.to_string())
                )
            })?;
        Ok(CompiledSchema {
            validator,
            parts: self.parts,
            patterns: self.patterns,
        })
    }
}

/// Expands a short form to JSON Schema: every field is required and has its type, other fields are
/// allowed. `{"type": "string"}` and the like are not a short form, because their author means JSON
/// Schema.
fn expand_short_form(map: &Map<String, Value>) -> Option<Value> {
    let schema_type = |value: &Value| {
        let text = value.as_str()?;
        SHORT_FORM_TYPES
            .iter()
            .find(|(short_type, _)| *short_type == text)
            .map(|(_, name)| *name)
    };
    let is_schema = map.get("type").is_some_and(|declared| {
        schema_type(declared).is_some_and(|name| declared.as_str() == Some(name))
    });
    if is_schema {
        return None;
    }
    let field_schema = |declared: &Value| match declared.as_str() {
        Some(ANY_TYPE) => Some(json!({})),
        Some(_) | None => Some(json!({"type": schema_type(declared)?})),
    };
    let fields = map
        .iter()
        .map(|(field, declared)| Some((field.clone(), field_schema(declared)?)));
    let properties: Map<String, Value> = fields.collect::<Option<_>>()?;
    let required: Vec<&String> = map.keys().collect();
    Some(json!({"type": "object", "properties": properties, "required": required}))
}

/// Counts the parts of a schema with its references expanded. A schema of a few lines can expand to
/// more work than there is time for, and one that contains itself never ends. Both are refused.
struct SchemaWalker<'a, 'b> {
    root: &'a Value,
    budget: &'b mut SchemaBudget,
    parts: usize,
    patterns: usize,
    unevaluated_count: usize,
    open_references: Vec<&'a str>,
}

impl<'a> SchemaWalker<'a, '_> {
    fn walk_part(&mut self, part: &'a Value) -> std::result::Result<(), String> {
        self.count_parts(1)?;
        match part {
            Value::Object(map) => map
                .iter()
                .try_for_each(|(key, inner)| self.walk_keyword(key, inner)),
            Value::Array(items) => items.iter().try_for_each(|inner| self.walk_part(inner)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn walk_keyword(&mut self, key: &str, inner: &'a Value) -> std::result::Result<(), String> {
        match (key, inner) {
            ("$ref", Value::String(reference)) => self.follow_reference(reference),
            (key, Value::String(_)) if UNSUPPORTED_REFERENCES.contains(&key) => {
                Err(format!("{key} is not supported"))
            }
            // Definitions are counted where a reference uses them; annotations cost nothing.
            ("$defs" | "definitions" | "default" | "examples", _) => Ok(()),
            // Their values are no schemas, but each may have to be compared.
            ("enum" | "const", _) => self.count_parts(count_values(inner)),
            // The keys are names, and a name may be the same as a keyword.
            (key, Value::Object(subschemas)) if NAMED_SUBSCHEMAS.contains(&key) => {
                if key == "patternProperties" {
                    self.count_patterns(subschemas.len())?;
                }
                subschemas
                    .values()
                    .try_for_each(|schema| self.walk_part(schema))
            }
            ("pattern", _) => self.count_patterns(1),
            ("unevaluatedProperties" | "unevaluatedItems", _) => {
                self.unevaluated_count += 1;
                if self.unevaluated_count > limits::SCHEMA_UNEVALUATED_KEYWORDS {
                    return Err(format!(
                        "it has unevaluated… more than {} times",
                        limits::SCHEMA_UNEVALUATED_KEYWORDS
                    ));
                }
                self.walk_part(inner)
            }
            (_, _) => self.walk_part(inner),
        }
    }

    fn count_parts(&mut self, parts: usize) -> std::result::Result<(), String> {
        self.parts += parts;
        if self.parts > limits::SCHEMA_PARTS {
            return Err(format!(
                "it has more than {} parts, its references written out",
                limits::SCHEMA_PARTS
            ));
        }
        let left = self.budget.parts_left.checked_sub(parts);
        self.budget.parts_left = left.ok_or_else(|| {
            format!(
                "the schemas of one request have at most {} parts together",
                limits::REQUEST_SCHEMA_PARTS
            )
        })?;
        Ok(())
    }

    fn count_patterns(&mut self, added: usize) -> std::result::Result<(), String> {
        self.patterns += added;
        if self.patterns > limits::SCHEMA_PATTERNS {
            return Err(format!(
                "it has more than {} patterns, its references written out",
                limits::SCHEMA_PATTERNS
            ));
        }
        let left = self.budget.patterns_left.checked_sub(added);
        self.budget.patterns_left = left.ok_or_else(|| {
            format!(
                "the schemas of one request have at most {} patterns together",
                limits::REQUEST_PATTERNS
            )
        })?;
        self.count_parts(added)
    }

    fn follow_reference(&mut self, reference: &'a str) -> std::result::Result<(), String> {
        // Percent escapes are refused: this function reads them literally, the validator decodes
        // them.
        let pointer = reference
            .strip_prefix('#')
            .filter(|pointer| pointer.starts_with('/') && !pointer.contains('%'));
        let pointer = pointer.ok_or_else(|| {
            format!(
                "$ref {}: only references inside the schema are followed",
                truncate_message(reference)
            )
        })?;
        let target = self
            .root
            .pointer(pointer)
            .ok_or_else(|| format!("$ref {} leads nowhere", truncate_message(reference)))?;
        if self.open_references.contains(&reference) {
            return Err(format!(
                "$ref {} contains itself, which is not supported",
                truncate_message(reference)
            ));
        }
        self.open_references.push(reference);
        self.walk_part(target)?;
        self.open_references.pop();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
