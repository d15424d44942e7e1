//! Checks every answer that a story gets against the OpenAPI document: its status is listed and its body has the schema.

use super::actors::Answer;
use jsonschema::Validator;
use reqwest::{Method, Url};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_slice(&chorus_server::openapi_document("https://hub.example")).unwrap()
});

/// Panics when the document does not describe the answer. What is no answer of an operation is not checked: an unknown
/// path, a method that a path does not take, an answer of a proxy.
pub fn check_answer(method: &Method, url: &Url, answer: &Answer) {
    let method = method.as_str().to_ascii_lowercase();
    let Some((path, operation)) = find_operation(&method, url.path()) else {
        return;
    };
    if answer.header("x-request-id").is_empty() {
        return;
    }
    let place = format!("{method} {path} {}", answer.status);
    let status = answer.status.to_string();
    let response = resolve(&operation["responses"][&status]);
    assert!(
        response.is_object(),
        "{place} is not documented: {answer:?}"
    );
    let media_type = answer.header("content-type").split(';').next();
    let media_type = media_type.unwrap_or_default().trim();
    let content = &response["content"][media_type];
    if answer.text.is_empty() {
        return;
    }
    assert!(
        content.is_object(),
        "{place} as {media_type:?} is not documented"
    );
    if media_type == "application/json" {
        check_body(&place, &content["schema"], &answer.json());
    }
}

fn check_body(place: &str, schema: &Value, body: &Value) {
    let validator = find_validator(place, schema);
    let faults: Vec<String> = validator
        .iter_errors(body)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{place}: {faults:#?}\n{body:#}");
}

/// One for each kind of answer: making one copies the whole document, and some stories get ten thousand answers.
fn find_validator(place: &str, schema: &Value) -> Arc<Validator> {
    static VALIDATORS: LazyLock<Mutex<HashMap<String, Arc<Validator>>>> =
        LazyLock::new(Mutex::default);
    let mut validators = VALIDATORS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(validator) = validators.get(place) {
        return validator.clone();
    }
    let mut schema = schema.clone();
    schema["components"] = DOCUMENT["components"].clone();
    let validator = Arc::new(jsonschema::validator_for(&schema).unwrap());
    validators.insert(place.to_owned(), validator.clone());
    validator
}

fn resolve(part: &'static Value) -> &'static Value {
    match part["$ref"].as_str() {
        Some(reference) => DOCUMENT.pointer(reference.trim_start_matches('#')).unwrap(),
        None => part,
    }
}

/// The operation of a request: literal segments win over parameters.
fn find_operation(method: &str, path: &str) -> Option<(&'static str, &'static Value)> {
    let fits = |route: &str| {
        let mut segments = route.split('/').zip(path.split('/'));
        route.split('/').count() == path.split('/').count()
            && segments.all(|(known, asked)| {
                known == asked || (known.starts_with('{') && !asked.is_empty())
            })
    };
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let (route, item) = paths
        .iter()
        .filter(|(route, _)| fits(route))
        .min_by_key(|(route, _)| route.matches('{').count())?;
    Some((route.as_str(), item.get(method)?))
}
