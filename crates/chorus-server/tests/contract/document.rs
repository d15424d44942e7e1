//! The OpenAPI document itself: every text is there and written for clients, every schema and example holds.

use crate::{client, document, operations, references, server};
use chorus_wire::ErrorCode;
use chorus_wire::frame::FrameCode;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Runs a check on the document of a fresh hub and lists every fault at once.
async fn assert_no_faults(check: impl Fn(&Value) -> Vec<String>) {
    let (server, _dir) = server().await;
    let document = document(&server).await;
    server.stop().await;
    let faults = check(&document);
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// The part itself, or what it refers to.
fn resolve<'a>(document: &'a Value, part: &'a Value) -> &'a Value {
    match part["$ref"].as_str() {
        Some(reference) => document
            .pointer(reference.trim_start_matches('#'))
            .unwrap_or(&Value::Null),
        None => part,
    }
}

fn has_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.trim().is_empty())
}

fn responses<'a>(document: &'a Value, operation: &'a Value) -> Vec<(&'a str, &'a Value)> {
    let responses = operation["responses"].as_object().unwrap();
    responses
        .iter()
        .map(|(status, response)| (status.as_str(), resolve(document, response)))
        .collect()
}

/// Calls `visit` with the place of every object in the document, except those inside examples.
fn visit_objects<'a>(value: &'a Value, place: &str, visit: &mut dyn FnMut(&str, &'a Value)) {
    match value {
        Value::Object(object) => {
            visit(place, value);
            for (key, part) in object {
                if !matches!(key.as_str(), "example" | "examples") {
                    visit_objects(part, &format!("{place}/{key}"), visit);
                }
            }
        }
        Value::Array(parts) => {
            for (index, part) in parts.iter().enumerate() {
                visit_objects(part, &format!("{place}/{index}"), visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test]
async fn every_operation_response_parameter_and_schema_has_a_description() {
    assert_no_faults(|document| {
        let mut faults = Vec::new();
        for (path, method, operation) in operations(document) {
            for key in ["summary", "description"] {
                if !has_text(&operation[key]) {
                    faults.push(format!("{method} {path} has no {key}"));
                }
            }
            for (status, response) in responses(document, operation) {
                if !has_text(&response["description"]) {
                    faults.push(format!("{method} {path} does not describe {status}"));
                }
            }
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let parameter = resolve(document, parameter);
                if !has_text(&parameter["description"]) {
                    faults.push(format!("{method} {path}: {}", parameter["name"]));
                }
            }
        }
        let mut described: Vec<(&str, &Value)> = Vec::new();
        for kind in ["schemas", "responses", "headers", "parameters"] {
            let components = document["components"][kind].as_object().unwrap();
            described.extend(components.iter().map(|(name, part)| (name.as_str(), part)));
        }
        for (name, part) in described {
            if !has_text(&part["description"]) {
                faults.push(format!("the component {name} has no description"));
            }
        }
        faults
    })
    .await;
}

#[tokio::test]
async fn every_operation_has_a_method_name_of_its_own() {
    assert_no_faults(|document| {
        let mut names = BTreeSet::new();
        let mut faults = Vec::new();
        for (path, method, operation) in operations(document) {
            let name = operation["operationId"].as_str().unwrap_or_default();
            let is_snake_case =
                name.contains('_') && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            if !is_snake_case || !names.insert(name) {
                faults.push(format!("{method} {path} is called {name:?}"));
            }
            if !operation["security"].is_array() {
                faults.push(format!("{method} {path} does not say which key it takes"));
            }
        }
        faults
    })
    .await;
}

/// What a client may read names no rule of ours and no item of our code.
#[tokio::test]
async fn no_published_text_cites_a_rule_or_names_rust_code() {
    const RULES: [&str; 11] = [
        "ENV-",
        "TRN-",
        "SKL-",
        "CHN-",
        "JOB-",
        "FRM-",
        "R-",
        "D-",
        "lesson ",
        "failure ",
        "invariant ",
    ];
    assert_no_faults(|document| {
        let mut faults = Vec::new();
        visit_objects(document, "", &mut |place, object| {
            for key in ["description", "summary", "title"] {
                let text = object[key].as_str().unwrap_or_default();
                let cites = RULES.iter().any(|rule| {
                    let mut numbers = text.match_indices(rule);
                    numbers.any(|(at, _)| {
                        text[at + rule.len()..].starts_with(|c: char| c.is_ascii_digit())
                    })
                });
                if cites || text.contains("[`") || text.contains("::") {
                    faults.push(format!("{place}: {text}"));
                }
            }
        });
        faults
    })
    .await;
}

/// The names of the schemas that replies are made of.
fn reply_schemas(document: &Value) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut queue = Vec::new();
    for (_, _, operation) in operations(document) {
        references(&operation["responses"], &mut queue);
    }
    while let Some(reference) = queue.pop() {
        if found.insert(reference) {
            let part = document.pointer(reference.trim_start_matches('#')).unwrap();
            references(part, &mut queue);
        }
    }
    found
        .into_iter()
        .filter_map(|reference| reference.strip_prefix("#/components/schemas/"))
        .collect()
}

/// A field that the hub leaves out is absent, never null; one that can be null is always there.
#[tokio::test]
async fn a_field_of_a_reply_is_null_only_when_it_is_required() {
    assert_no_faults(|document| {
        let mut faults = Vec::new();
        // An object that clients send too may have nulls that the hub takes and never sends.
        let requests = chorus_wire::schemas::request_schemas("");
        for name in reply_schemas(document) {
            if requests.contains_key(name) {
                continue;
            }
            let schema = &document["components"]["schemas"][name];
            visit_objects(schema, name, &mut |place, object| {
                let required = object["required"].as_array().cloned().unwrap_or_default();
                let properties = object["properties"].as_object().into_iter().flatten();
                for (field, property) in properties {
                    let types = property["type"].as_array().cloned().unwrap_or_default();
                    let choices = ["oneOf", "anyOf"].map(|key| property[key].as_array());
                    let null_choice = choices
                        .into_iter()
                        .flatten()
                        .flatten()
                        .any(|choice| choice["type"] == "null");
                    let is_nullable = null_choice || types.contains(&json!("null"));
                    if is_nullable && !required.contains(&json!(field)) && !place.contains("Rpc") {
                        faults.push(format!("{place}.{field}"));
                    }
                }
            });
        }
        faults
    })
    .await;
}

/// A stream says which events it has and what is in them.
#[tokio::test]
async fn every_stream_lists_its_events_with_the_schema_of_their_data() {
    assert_no_faults(|document| {
        let mut faults = Vec::new();
        let mut streams = 0;
        for (path, method, operation) in operations(document) {
            let response = &operation["responses"]["200"];
            let content = &response["content"]["text/event-stream"];
            if content.is_null() {
                continue;
            }
            streams += 1;
            let events = content["x-event-types"].as_object();
            let are_whole = events.is_some_and(|events| {
                events.len() > 1
                    && events
                        .values()
                        .all(|event| has_text(&event["description"]) && event["data"].is_object())
            });
            if !are_whole {
                faults.push(format!("{method} {path}"));
            }
            // One operation answers with JSON or with a stream: both are described, and a typed client says which it reads.
            let others = response["content"].as_object().unwrap().len() - 1;
            if others != usize::from(operation["operationId"] == "send_message") {
                faults.push(format!(
                    "{method} {path} answers with other media types too"
                ));
            }
        }
        assert_eq!(streams, 5);
        faults
    })
    .await;
}

/// Generators of clients name a type after its schema, so what a reply wraps has a name of its own.
#[tokio::test]
async fn the_data_of_every_wrapped_reply_is_a_named_schema() {
    assert_no_faults(|document| {
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let wrapped = schemas
            .iter()
            .filter(|(name, _)| name.starts_with("SuccessReply_"));
        wrapped
            .filter(|(_, schema)| schema["properties"]["data"].get("properties").is_some())
            .map(|(name, _)| name.clone())
            .collect()
    })
    .await;
}

/// The faults of a value against a schema of the document.
fn schema_faults(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut root = schema.clone();
    root["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&root).unwrap();
    validator
        .iter_errors(value)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect()
}

#[tokio::test]
async fn every_example_is_valid_against_its_schema() {
    assert_no_faults(|document| {
        let mut faults = Vec::new();
        let mut checked = 0;
        visit_objects(document, "", &mut |place, object| {
            // A media type has its schema beside the example, a schema has it around the example.
            let schema = object.get("schema").unwrap_or(object);
            let examples = object["examples"].as_array().into_iter().flatten();
            for example in object.get("example").into_iter().chain(examples) {
                checked += 1;
                for fault in schema_faults(document, schema, example) {
                    faults.push(format!("{place}: {fault}"));
                }
            }
        });
        assert!(checked > 50, "only {checked} examples were found");
        faults
    })
    .await;
}

/// a heartbeat needs to say nothing, and a client reads that in the document.
#[tokio::test]
async fn a_body_that_may_be_absent_is_not_required() {
    assert_no_faults(|document| {
        let body = &document["paths"]["/heartbeat"]["post"]["requestBody"];
        let is_optional = body["content"].is_object() && body["required"] != json!(true);
        (!is_optional)
            .then(|| body.to_string())
            .into_iter()
            .collect()
    })
    .await;
}

/// The example of a body: its own, or that of its schema.
fn find_example<'a>(document: &'a Value, content: &'a Value) -> Option<&'a Value> {
    let schema = resolve(document, &content["schema"]);
    let of_part = |part: &'a Value| part.get("example").or_else(|| part.get("examples")?.get(0));
    of_part(content).or_else(|| of_part(schema))
}

/// A generated client sends the fields of the published body. A route of another body would refuse them.
#[tokio::test]
async fn every_request_body_has_only_fields_that_its_route_takes() {
    let (server, _dir) = server().await;
    let document = document(&server).await;
    let client = client();
    let mut faults = Vec::new();
    let mut checked = 0;
    for (number, (path, method, operation)) in operations(&document).into_iter().enumerate() {
        let content = &operation["requestBody"]["content"]["application/json"];
        let Some(example) = find_example(&document, content) else {
            continue;
        };
        // A key for each, because some requests end the key that they come with.
        let card =
            json!({"card_version": "0.3", "user_culture": "en", "supported_languages": ["en"]});
        let agent = json!({"agent_id": format!("agent-{number}@chorus"), "agent_card": card});
        let register = client.post(format!("{}/register", server.url()));
        let registered = register.json(&agent).send().await.unwrap();
        let registered: Value = registered.json().await.unwrap();
        let key = registered["data"]["api_key"].as_str().unwrap();
        let url = format!("{}{}", server.url(), path.replace(['{', '}'], "x"));
        let verb = reqwest::Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        let request = client.request(verb, url).bearer_auth(key).json(example);
        let answer = request.send().await.unwrap().text().await.unwrap();
        checked += 1;
        if answer.contains("is not a field") || answer.contains("field-unknown") {
            faults.push(format!("{method} {path}: {answer}"));
        }
    }
    server.stop().await;
    assert!(checked > 20, "only {checked} examples were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn every_request_body_and_json_reply_has_an_example() {
    assert_no_faults(|document| {
        let mut faults = Vec::new();
        let has_example = |content: &Value| {
            let schema = resolve(document, &content["schema"]);
            [content, schema]
                .iter()
                .any(|part| part.get("example").is_some() || part.get("examples").is_some())
        };
        for (path, method, operation) in operations(document) {
            let body = &operation["requestBody"]["content"]["application/json"];
            if !body.is_null() && !has_example(body) {
                faults.push(format!("{method} {path}: the request"));
            }
            for (status, response) in responses(document, operation) {
                let content = &response["content"]["application/json"];
                if status.starts_with('2') && !content.is_null() && !has_example(content) {
                    faults.push(format!("{method} {path}: {status}"));
                }
            }
        }
        faults
    })
    .await;
}

/// Every response has the headers that the hub really sends with it.
#[tokio::test]
async fn every_response_documents_its_headers() {
    assert_no_faults(|document| {
        let mut faults = Vec::new();
        for (path, method, operation) in operations(document) {
            for (status, response) in responses(document, operation) {
                let mut needed = vec!["X-Request-Id"];
                match status {
                    "429" | "503" => needed.push("Retry-After"),
                    "401" => needed.push("WWW-Authenticate"),
                    _ => {}
                }
                for name in needed {
                    if response["headers"].get(name).is_none() {
                        faults.push(format!("{method} {path} {status}: {name}"));
                    }
                }
            }
        }
        faults
    })
    .await;
}

#[tokio::test]
async fn every_error_code_is_in_the_schema_of_its_form() {
    assert_no_faults(|document| {
        let mut error_codes: Vec<&str> = Vec::new();
        for code in ErrorCode::ALL.iter().map(|code| code.as_str()) {
            // one code has two statuses.
            if !error_codes.contains(&code) {
                error_codes.push(code);
            }
        }
        let frame_codes: Vec<&str> = FrameCode::ALL.iter().map(|code| code.as_str()).collect();
        let forms = [
            ("FailureBody", "code", &error_codes),
            ("MarketFailure", "error_code", &error_codes),
            ("FrameFailure", "code", &frame_codes),
        ];
        let mut faults = Vec::new();
        for (form, field, codes) in forms {
            let schema = &document["components"]["schemas"][form]["properties"][field];
            if resolve(document, schema)["enum"] != json!(codes) {
                faults.push(format!("{form}.{field}: {schema}"));
            }
        }
        faults
    })
    .await;
}
