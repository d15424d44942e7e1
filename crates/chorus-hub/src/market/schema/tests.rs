//! Which schemas are valid, and which inputs each of them accepts.

use super::*;

fn accepts(schema: &Value, input: &Value) -> bool {
    match check_value_now(JobValue::Input, schema, input) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.code, ErrorCode::SkillMismatch, "{error}");
            false
        }
    }
}

#[test]
fn the_short_form_requires_its_fields_and_their_types() {
    let schema = json!({"text": "string", "count": "integer", "tags": "list", "more": "dict", "sure": "boolean", "x": "number"});
    let good = json!({"text": "a", "count": 3, "tags": [], "more": {}, "sure": true, "x": 0.5});
    assert!(accepts(&schema, &good));
    let mut extended = good.clone();
    extended["unasked"] = json!(1);
    assert!(accepts(&schema, &extended));
    for (field, wrong) in [
        ("text", json!(1)),
        ("count", json!(1.5)),
        ("tags", json!({})),
        ("more", json!([])),
        ("sure", json!("yes")),
        ("x", json!("1")),
    ] {
        let mut bad = good.clone();
        bad[field] = wrong;
        assert!(!accepts(&schema, &bad), "{bad}");
        bad.as_object_mut().unwrap().remove(field);
        assert!(!accepts(&schema, &bad), "{field} is missing");
    }
    assert!(!accepts(&schema, &json!("text")));
}

#[test]
fn a_json_schema_is_applied_as_such() {
    let schema = json!({"type": "object", "required": ["text"], "additionalProperties": false,
        "properties": {"text": {"$ref": "#/$defs/line"}}, "$defs": {"line": {"type": "string", "maxLength": 3}}});
    assert!(accepts(&schema, &json!({"text": "abc"})));
    for bad in [
        json!({"text": "abcd"}),
        json!({}),
        json!({"text": "a", "more": 1}),
        json!([]),
    ] {
        assert!(!accepts(&schema, &bad), "{bad}");
    }
    assert!(
        accepts(&json!({"type": "string"}), &json!("plain"))
            && !accepts(&json!({"type": "string"}), &json!({"type": "x"}))
    );
}

#[test]
fn field_names_that_are_also_keywords_stay_field_names_in_the_short_form() {
    let schema =
        json!({"title": "string", "description": "string", "format": "string", "type": "list"});
    assert!(accepts(
        &schema,
        &json!({"title": "a", "description": "b", "format": "c", "type": []})
    ));
    assert!(!accepts(&schema, &json!({"title": "a"})));
}

#[test]
fn an_error_names_the_field_and_does_not_quote_the_whole_input() {
    let schema = json!({"text": "string"});
    let error =
        check_value_now(JobValue::Input, &schema, &json!({"text": vec!["x"; 1_000]})).unwrap_err();
    assert!(
        error.message.starts_with("input_data.text ") && error.message.len() < 400,
        "{error}"
    );
}

#[test]
fn an_invalid_schema_is_refused() {
    for bad in [
        json!({"text": "strin"}),
        json!({"text": "string", "count": 5}),
        json!({"user": {"name": "string"}}),
        json!({"type": "nonsense"}),
        json!({"type": 7}),
        json!({"type": "object", "properties": "text"}),
        json!({"type": "object", "properties": {"a": "string"}}),
        json!({"required": "text"}),
        json!({"minimum": "3"}),
        json!({"type": "string", "pattern": "("}),
        json!([]),
    ] {
        assert!(compile_schema(&bad).is_err(), "{bad}");
    }
}

/// A worker's schema runs on the hub, so it must not fetch, recurse or expand without a limit.
#[test]
fn a_schema_cannot_fetch_or_exhaust_the_hub() {
    let mut bomb = json!({"$ref": "#/$defs/a0", "$defs": {"a40": {"type": "string"}}});
    for n in 0..40 {
        let next = json!({"$ref": format!("#/$defs/a{}", n + 1)});
        bomb["$defs"][format!("a{n}")] = json!({"allOf": [next, next]});
    }
    for bad in [
        bomb,
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}),
        json!({"$ref": "#/$defs/gone"}),
        json!({"$ref": "http://127.0.0.1:9/schema.json"}),
        json!({"$ref": "file:///etc/hosts"}),
        json!({"$id": "http://127.0.0.1:9/", "type": "string"}),
        json!({"type": "string", "properties": {"a": {"$dynamicRef": "#x"}}}),
        json!({"$schema": "http://127.0.0.1:9/meta", "type": "string"}),
    ] {
        assert!(compile_schema(&bad).is_err(), "{bad}");
    }
    assert!(
        compile_schema(&json!({"type": "object", "properties": {"id": {"type": "string"}, "$ref": {"type": "string"}}}))
            .is_ok()
    );
}

/// A matcher that backtracks would never finish this pattern.
#[test]
fn a_hostile_pattern_is_matched_in_linear_time() {
    let schema = json!({"type": "string", "pattern": "^(a+)+$"});
    assert!(!accepts(
        &schema,
        &json!(format!("{}b", "a".repeat(50_000)))
    ));
}

/// Earlier versions accepted some of these, because the reference was percent-encoded or stood
/// under a property with the name of a keyword.
#[test]
fn a_reference_is_found_however_it_is_written_and_wherever_it_stands() {
    let mut bomb = json!({"$ref": "#/$defs/a0", "$defs": {"a20": {"type": "object"}}});
    for n in 0..20 {
        let next = json!({"$ref": format!("#/$defs/a{}", n + 1)});
        bomb["$defs"][format!("a{n}")] =
            json!({"properties": {"default": {"allOf": [next, next]}}});
    }
    let escaped = json!({"$ref": "#/$defs/a%62",
        "$defs": {"a%62": {"type": "string"}, "ab": {"anyOf": [{"$ref": "#/$defs/a%62"}]}}});
    let recursive = |name: &str| json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {name: {"$ref": "#/$defs/a"}}}}});
    for bad in [
        bomb,
        escaped,
        recursive("default"),
        recursive("enum"),
        recursive("const"),
        recursive("examples"),
    ] {
        assert!(compile_schema(&bad).is_err(), "{bad}");
    }
    let keyword_names = json!({"type": "object", "properties": {"default": {"type": "string"}, "pattern": {"enum": ["a", "b"]}}});
    assert!(
        accepts(&keyword_names, &json!({"default": "x", "pattern": "a"}))
            && !accepts(&keyword_names, &json!({"default": 1}))
    );
}

#[test]
fn short_patterns_do_not_exhaust_memory() {
    let schema_with_patterns = |count: usize| {
        let fields = (0..count).map(|n| {
            (
                format!("p{n}"),
                json!({"type": "string", "pattern": "^[a-z]{2,8}$"}),
            )
        });
        json!({"type": "object", "properties": fields.collect::<Map<_, _>>()})
    };
    assert!(
        compile_schema(&schema_with_patterns(limits::SCHEMA_PATTERNS)).is_ok()
            && compile_schema(&schema_with_patterns(limits::SCHEMA_PATTERNS + 1)).is_err()
    );
    let names = (0..=limits::SCHEMA_PATTERNS).map(|n| (format!("^x{n}"), json!({})));
    assert!(compile_schema(&json!({"patternProperties": names.collect::<Map<_, _>>()})).is_err());
    for good in [
        r"^[^@\s]+@[^@\s]+\.[a-z]+$",
        r"^\d{4}-\d{2}-\d{2}$",
        r"^\p{L}[\p{L}\p{N} '-]*$",
        "^[0-9a-f]{64}$",
    ] {
        assert!(
            compile_schema(&json!({"type": "string", "pattern": good})).is_ok(),
            "{good}"
        );
    }
    for bad in ["((a{40}){40}){40}", r"^(\p{L}{20}){10}$"] {
        assert!(
            compile_schema(&json!({"type": "string", "pattern": bad})).is_err(),
            "{bad}"
        );
    }
}

#[test]
fn unevaluated_keywords_are_limited() {
    let nested = |depth: usize| {
        (0..depth).fold(
            json!({"type": "object"}),
            |inner, _| json!({"anyOf": [inner], "unevaluatedProperties": false}),
        )
    };
    assert!(compile_schema(&nested(limits::SCHEMA_UNEVALUATED_KEYWORDS)).is_ok());
    assert!(compile_schema(&nested(limits::SCHEMA_UNEVALUATED_KEYWORDS + 1)).is_err());
}

#[test]
fn an_input_that_would_take_too_long_to_check_is_refused_at_once() {
    let many_parts = json!({"type": "array", "items": {"allOf": vec![json!({"minimum": 0}); 900]}});
    let many_values = json!({"type": "array", "items": {"enum": (0..1_900).collect::<Vec<_>>()}});
    for schema in [&many_parts, &many_values] {
        assert!(accepts(schema, &json!(vec![1; 100])));
        assert!(!accepts(schema, &json!(vec![1; 25_000])));
    }
    let plain = json!({"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 9}});
    assert!(accepts(&plain, &json!(vec![1; 25_000])));
}

/// R-99: a registration has up to 128 schemas, so each within its own limits is not enough.
#[test]
fn the_schemas_of_one_request_are_limited_together() {
    let patterns = |count: usize| {
        let pattern = |n: usize| json!({"pattern": format!("^x{n}$")});
        json!({"allOf": (0..count).map(pattern).collect::<Vec<_>>()})
    };
    let parts = |count: usize| json!({"allOf": vec![json!({}); count]});
    let offers = |schema: Value, count: usize| -> Vec<SkillOffer> {
        let offer = |number: usize| SkillOffer {
            skill_name: format!("s{number}"),
            description: None,
            cost_per_call: chorus_wire::credits::Credits::from_hundredths(1),
            input_schema: Some(schema.clone()),
            output_schema: None,
        };
        (0..count).map(offer).collect()
    };
    let half = limits::REQUEST_PATTERNS / 2;
    assert!(check_skill_schemas(&offers(patterns(half), 2)).is_ok());
    let refused = check_skill_schemas(&offers(patterns(half), 3)).unwrap_err();
    assert!(refused.message.contains("patterns together"), "{refused}");
    let refused = check_skill_schemas(&offers(parts(1_900), 6)).unwrap_err();
    assert!(refused.message.contains("parts together"), "{refused}");
}

/// D-104: with a bound on their number alone, schemas with many patterns would take a hundred times the memory of small ones.
#[test]
fn compiled_schemas_are_cached_by_the_memory_that_they_can_take() {
    let cache = new_schema_cache(crate::limits::COMPILED_SCHEMAS_BYTES);
    for number in 0..12 {
        let pattern = |n: usize| json!({"pattern": format!("^x{n}$")});
        let patterns: Vec<Value> = (0..limits::SCHEMA_PATTERNS).map(pattern).collect();
        let compiled = compile_schema(&json!({"allOf": patterns})).unwrap();
        cache.insert(number.to_string(), Arc::new(compiled));
    }
    let each = limits::SCHEMA_PATTERNS * crate::limits::PATTERN_MEMORY;
    let most = crate::limits::COMPILED_SCHEMAS_BYTES as usize / each;
    assert!((1..=most).contains(&cache.len()), "{}", cache.len());
}

/// R-99, D-98: only what is compiled and short is checked on the thread of a request.
#[test]
fn only_a_short_check_runs_where_it_is_asked_for() {
    let small = |schema: &Value, value: &Value| check_small_value(JobValue::Input, schema, value);
    let schema = json!({"short": "string"});
    let fitting = json!({"short": "text"});
    assert!(small(&schema, &fitting).is_none(), "it is not compiled yet");
    assert!(accepts(&schema, &fitting));
    assert!(small(&schema, &fitting).unwrap().is_ok());
    // The verdict and its sentence are those of the long way.
    let misfit = json!({"short": 7});
    assert_eq!(
        small(&schema, &misfit).unwrap().unwrap_err().message,
        check_value_now(JobValue::Input, &schema, &misfit)
            .unwrap_err()
            .message
    );
    let long = json!({"short": "text", "rest": vec![0; 256]});
    assert!(small(&schema, &long).is_none());
    let pattern = json!({"type": "object", "properties": {"short": {"pattern": "^t"}}});
    assert!(accepts(&pattern, &fitting));
    assert!(
        small(&pattern, &fitting).is_none(),
        "a pattern may take long"
    );
}
