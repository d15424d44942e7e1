//! Values from a JSON Schema: most satisfy it, some just miss it.

use proptest::prelude::*;
use proptest::strategy::Union;
use serde_json::{Map, Value, json};

/// Values for `schema`, whose references point into `definitions`.
pub fn values_of(schema: &Value, definitions: &Value) -> BoxedStrategy<Value> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap_or_default();
        return values_of(&definitions[name], definitions);
    }
    if let Some(texts) = schema["enum"].as_array() {
        return prop::sample::select(texts.clone()).boxed();
    }
    if schema.get("const").is_some() {
        return Just(schema["const"].clone()).boxed();
    }
    match kind_of(schema) {
        Some("string") => texts_of(schema),
        Some("integer") => integers_of(schema),
        Some("number") => prop_oneof![
            4 => (0..20_000u32).prop_map(|n| json!(f64::from(n) / 100.0)),
            1 => prop::sample::select(vec![json!(-1), json!(0.105), json!(1e12), json!(2)]),
        ]
        .boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("array") => lists_of(schema, definitions),
        Some("object") => objects_of(schema, definitions),
        Some(_) => Just(Value::Null).boxed(),
        None => alternatives_of(schema, definitions),
    }
}

fn kind_of(schema: &Value) -> Option<&str> {
    let kind = &schema["type"];
    kind.as_str().or_else(|| kind[0].as_str())
}

fn alternatives_of(schema: &Value, definitions: &Value) -> BoxedStrategy<Value> {
    let alternatives = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
    match alternatives {
        Some(alternatives) => Union::new(
            alternatives
                .iter()
                .map(|alternative| values_of(alternative, definitions)),
        )
        .boxed(),
        None => junk().boxed(),
    }
}

/// Small values of every type.
pub fn junk() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-3),
        json!(1.5),
        json!(""),
        json!("x"),
        json!("\u{0}"),
        json!([]),
        json!([1]),
        json!({}),
        json!({"a": 1}),
    ])
}

fn texts_of(schema: &Value) -> BoxedStrategy<Value> {
    let min = schema["minLength"].as_u64().unwrap_or(0) as usize;
    let max = schema["maxLength"].as_u64().unwrap_or(64) as usize;
    // Whether such a day or host exists is beyond a pattern, so those texts come from lists.
    if schema["format"] == "date-time" {
        return select_texts(&[
            "2026-02-11T14:15:09Z",
            "2026-02-11T14:15:09Z",
            "1999-12-31T23:59:59Z",
            "2030-01-01T00:00:00+00:00",
            "2026-02-11t14:15:09.123456789+05:30",
            "2024-02-29T00:00:00-23:59",
            "2026-02-11T14:15:09",
            "2026-02-11",
            "now",
        ]);
    }
    if schema["format"] == "uri"
        || schema["pattern"]
            .as_str()
            .is_some_and(|p| p.contains("://"))
    {
        return select_texts(&[
            "https://agent.example.com/hook",
            "https://a.example/",
            "http://192.0.2.1:81/x?y",
            "https://b.example?q",
            "HTTP://localhost:8080?x=1#y",
            "https://[::1]/a",
            "https://user@example.com/",
            "https://example.com/a b",
            "ftp://example.com/",
            "https:/example.com",
            "https://",
            "//example.com",
        ]);
    }
    let edges = [min.saturating_sub(1), min, max, max + 1]
        .into_iter()
        .filter(|length| *length <= 6_000)
        .flat_map(|length| ["a", "é", "\n"].map(|c| json!(c.repeat(length))))
        .collect::<Vec<_>>();
    let examples = schema["examples"].as_array().cloned().unwrap_or_default();
    let edges = prop::sample::select([edges, examples].concat());
    match schema["pattern"].as_str() {
        Some(pattern) => {
            let inner = pattern.trim_start_matches('^').trim_end_matches('$');
            let matching = proptest::string::string_regex(inner).unwrap();
            prop_oneof![40 => matching.prop_map(Value::from), 2 => edges, 1 => junk()].boxed()
        }
        None => {
            let length = min..=max.min(min + 20);
            let text = prop::collection::vec(any::<char>(), length)
                .prop_map(|chars| Value::from(chars.into_iter().collect::<String>()));
            prop_oneof![40 => text, 2 => edges, 1 => junk()].boxed()
        }
    }
}

fn select_texts(texts: &[&str]) -> BoxedStrategy<Value> {
    let texts: Vec<Value> = texts.iter().map(|text| json!(text)).collect();
    prop::sample::select(texts).boxed()
}

fn integers_of(schema: &Value) -> BoxedStrategy<Value> {
    let min = schema["minimum"].as_u64().unwrap_or(0);
    let max = schema["maximum"].as_u64().unwrap_or(u64::MAX);
    let edges = vec![
        json!(min),
        json!(max),
        json!(min.saturating_sub(1)),
        json!(max.saturating_add(1)),
        json!(min as f64 + 1.0),
        json!(min as f64 + 0.5),
        json!(-1),
    ];
    prop_oneof![20 => (min..=max.min(min + 100)).prop_map(Value::from), 2 => prop::sample::select(edges), 1 => junk()].boxed()
}

fn lists_of(schema: &Value, definitions: &Value) -> BoxedStrategy<Value> {
    let min = schema["minItems"].as_u64().unwrap_or(0) as usize;
    let items = match schema.get("items") {
        Some(items) => values_of(items, definitions),
        None => junk().boxed(),
    };
    let lists = prop::collection::vec(items, min..=min + 2).prop_map(Value::from);
    prop_oneof![30 => lists, 1 => junk()].boxed()
}

fn objects_of(schema: &Value, definitions: &Value) -> BoxedStrategy<Value> {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let is_required = |name: &str| {
        let required = schema["required"].as_array();
        required.is_some_and(|names| names.iter().any(|other| other == name))
    };
    let fields: Vec<BoxedStrategy<Option<(String, Value)>>> = properties
        .iter()
        .map(|(name, schema)| {
            let name = name.clone();
            let presence = if is_required(&name) { 0.99 } else { 0.4 };
            let value = prop_oneof![60 => values_of(schema, definitions), 1 => junk()];
            prop::option::weighted(presence, value.prop_map(move |value| (name.clone(), value)))
                .boxed()
        })
        .collect();
    let unknown =
        prop::option::weighted(0.03, junk().prop_map(|value| ("stray".to_owned(), value)));
    (fields, unknown)
        .prop_map(|(fields, unknown)| {
            let fields = fields.into_iter().chain([unknown]).flatten();
            Value::Object(fields.collect())
        })
        .boxed()
}
