//! Whether an input is what a skill asks for: JSON Schema, or the short form `{"text":"string"}` that the document prints.

use crate::Result;
use chorus_wire::market::skill::Skill;
use chorus_wire::{Code, Error, limits};
use jsonschema::{PatternOptions, Validator};
use quick_cache::{Weighter, sync::Cache};
use serde_json::{Map, Value, json};
use std::sync::{Arc, LazyLock};

/// The words of the short form and their names in JSON Schema. The document prints `string` and `list`; the rest are their kin.
const WORDS: [(&str, &str); 11] = [
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
];

/// What a schema may say. A few of them have to be there for an object to be a schema at all; without this rule every object
/// would be one, and a misspelt short form would let everything through.
const KEYWORDS: &str = "$schema $ref $defs definitions type enum const properties required additionalProperties patternProperties \
    propertyNames minProperties maxProperties dependentRequired dependentSchemas items prefixItems contains \
    minContains maxContains minItems maxItems uniqueItems minLength maxLength pattern format minimum maximum \
    exclusiveMinimum exclusiveMaximum multipleOf allOf anyOf oneOf not if unevaluatedProperties unevaluatedItems";

/// Ways to point elsewhere that are not followed: out of the document, or by names whose meaning changes on the way.
const ELSEWHERE: [&str; 6] = [
    "$id",
    "id",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
];

/// Keywords whose keys are names, and whose values are schemas.
const NAMED: [&str; 4] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
];

/// A schema that can be run, and what there is of it.
struct Compiled {
    validator: Validator,
    parts: usize,
    patterns: usize,
}

/// Patterns are what a compiled schema takes memory for.
#[derive(Clone)]
struct Patterned;

impl Weighter<String, Arc<Compiled>> for Patterned {
    fn weight(&self, _: &String, of: &Arc<Compiled>) -> u64 {
        1 + of.patterns as u64
    }
}

static COMPILED: LazyLock<Cache<String, Arc<Compiled>, Patterned>> = LazyLock::new(|| {
    Cache::with_weighter(
        limits::SCHEMAS_COMPILED,
        limits::SCHEMAS_COMPILED as u64,
        Patterned,
    )
});

/// Whether the schemas of a skill are schemas; asked before it is offered.
pub(crate) fn admit(skill: &Skill) -> Result<()> {
    let schemas = [
        ("input_schema", &skill.input_schema),
        ("output_schema", &skill.output_schema),
    ];
    for (field, schema) in schemas {
        if let Some(schema) = schema {
            let refused =
                |why: String| Error::validation(format!("{field} of {}: {why}", skill.skill_name));
            compile(schema).map_err(refused)?;
        }
    }
    Ok(())
}

/// Whether this input is what the skill, as registered, asks for (JOB-27). Nobody is charged for one that is not.
pub(crate) fn check_input(skill: &Value, input: &Value) -> Result<()> {
    let Some(schema) = skill.get("input_schema").filter(|schema| !schema.is_null()) else {
        return Ok(());
    };
    let text = schema.to_string();
    let compiled = match COMPILED.get(&text) {
        Some(compiled) => compiled,
        None => {
            let compiled = Arc::new(compile(schema).map_err(Error::internal)?);
            COMPILED.insert(text, compiled.clone());
            compiled
        }
    };
    // Each part may have to be held against each value, and nobody else is served meanwhile.
    if compiled.parts.saturating_mul(values(input)) > limits::SCHEMA_WORK {
        let said = "input_data has more values than can be checked against the schema of the skill";
        return Err(Error::new(Code::SkillMismatch, said));
    }
    compiled.validator.validate(input).map_err(|fault| {
        let place = format!(
            "input_data{}",
            fault.instance_path().as_str().replace('/', ".")
        );
        // The library's sentence quotes the value, which may be long and is the client's own.
        Error::new(
            Code::SkillMismatch,
            format!(
                "{place} is not what the skill takes: {}",
                short(&fault.to_string())
            ),
        )
    })
}

/// The first part of a sentence that may quote a whole document.
fn short(said: &str) -> String {
    match said.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &said[..end]),
        None => said.to_owned(),
    }
}

/// How many values there are in a value, itself included.
fn values(of: &Value) -> usize {
    match of {
        Value::Object(map) => 1 + map.values().map(values).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

fn compile(schema: &Value) -> std::result::Result<Compiled, String> {
    let Value::Object(map) = schema else {
        return Err("it must be an object".into());
    };
    let written_out = short_form(map);
    let schema = written_out.as_ref().unwrap_or(schema);
    if written_out.is_none()
        && !map
            .keys()
            .any(|key| KEYWORDS.split(' ').any(|word| word == key))
    {
        return Err("it is neither a JSON Schema nor of the form {\"field\": \"type\"} with the types string, number, integer, \
                    boolean, array or list, object or dict"
            .into());
    }
    let mut unfolding = Unfolding {
        root: schema,
        parts: 0,
        patterns: 0,
        unevaluated: 0,
        under_way: Vec::new(),
    };
    unfolding.unfold(schema)?;
    let Unfolding {
        parts, patterns, ..
    } = unfolding;
    // Patterns are matched in linear time and small, so that nobody's expression keeps the hub busy or fills it.
    let pattern = PatternOptions::regex()
        .size_limit(limits::PATTERN_BYTES)
        .dfa_size_limit(limits::PATTERN_BYTES);
    let options = jsonschema::options().with_pattern_options(pattern);
    let validator = options.build(schema);
    let validator = validator
        .map_err(|fault| format!("it is no JSON Schema: {}", short(&fault.to_string())))?;
    Ok(Compiled {
        validator,
        parts,
        patterns,
    })
}

/// The JSON Schema that a short form stands for: every field is there and has its type, others may be there too.
/// `{"type": "string"}` and its like are JSON Schema: that is what somebody who writes it means.
fn short_form(map: &Map<String, Value>) -> Option<Value> {
    let word = |value: &Value| {
        let text = value.as_str()?;
        WORDS
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, name)| *name)
    };
    let is_schema = map
        .get("type")
        .is_some_and(|of| word(of).is_some_and(|name| of.as_str() == Some(name)));
    if is_schema {
        return None;
    }
    let fields = map
        .iter()
        .map(|(field, of)| Some((field.clone(), json!({"type": word(of)?}))));
    let properties: Map<String, Value> = fields.collect::<Option<_>>()?;
    let required: Vec<&String> = map.keys().collect();
    Some(json!({"type": "object", "properties": properties, "required": required}))
}

/// Writes references out in thought and counts: a schema of a few lines can ask for more work than there is time, and one that
/// contains itself for work without end. Both are refused.
struct Unfolding<'a> {
    root: &'a Value,
    parts: usize,
    patterns: usize,
    unevaluated: usize,
    under_way: Vec<&'a str>,
}

impl<'a> Unfolding<'a> {
    fn unfold(&mut self, part: &'a Value) -> std::result::Result<(), String> {
        self.count(1)?;
        match part {
            Value::Object(map) => map
                .iter()
                .try_for_each(|(key, inner)| self.keyword(key, inner)),
            Value::Array(items) => items.iter().try_for_each(|inner| self.unfold(inner)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    fn keyword(&mut self, key: &str, inner: &'a Value) -> std::result::Result<(), String> {
        match (key, inner) {
            ("$ref", Value::String(to)) => self.follow(to),
            (key, Value::String(_)) if ELSEWHERE.contains(&key) => {
                Err(format!("{key} is not supported"))
            }
            // What is defined counts where something refers to it, and what is only told does not.
            ("$defs" | "definitions" | "default" | "examples", _) => Ok(()),
            // No schemas, but each may have to be compared.
            ("enum" | "const", _) => self.count(values(inner)),
            // Under these stand names, which may be those of keywords.
            (key, Value::Object(named)) if NAMED.contains(&key) => {
                if key == "patternProperties" {
                    self.patterns(named.len())?;
                }
                named.values().try_for_each(|schema| self.unfold(schema))
            }
            ("pattern", _) => self.patterns(1),
            ("unevaluatedProperties" | "unevaluatedItems", _) => {
                self.unevaluated += 1;
                if self.unevaluated > limits::SCHEMA_UNEVALUATED {
                    return Err(format!(
                        "it has unevaluated… more than {} times",
                        limits::SCHEMA_UNEVALUATED
                    ));
                }
                self.unfold(inner)
            }
            (_, _) => self.unfold(inner),
        }
    }

    fn count(&mut self, parts: usize) -> std::result::Result<(), String> {
        self.parts += parts;
        if self.parts <= limits::SCHEMA_PARTS {
            return Ok(());
        }
        Err(format!(
            "it has more than {} parts, its references written out",
            limits::SCHEMA_PARTS
        ))
    }

    fn patterns(&mut self, more: usize) -> std::result::Result<(), String> {
        self.patterns += more;
        if self.patterns <= limits::SCHEMA_PATTERNS {
            return self.count(more);
        }
        Err(format!(
            "it has more than {} patterns, its references written out",
            limits::SCHEMA_PATTERNS
        ))
    }

    fn follow(&mut self, to: &'a str) -> std::result::Result<(), String> {
        // An escape would be read here as it stands, and by who runs the schema as what it stands for.
        let place = to
            .strip_prefix('#')
            .filter(|place| place.starts_with('/') && !place.contains('%'));
        let place = place.ok_or_else(|| {
            format!(
                "$ref {}: only references inside the schema are followed",
                short(to)
            )
        })?;
        let target = self
            .root
            .pointer(place)
            .ok_or_else(|| format!("$ref {} leads nowhere", short(to)))?;
        if self.under_way.contains(&to) {
            return Err(format!(
                "$ref {} contains itself, which is not supported",
                short(to)
            ));
        }
        self.under_way.push(to);
        self.unfold(target)?;
        self.under_way.pop();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
