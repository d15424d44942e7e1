//! The OpenAPI contract against the server that serves it, and the table of errors against docs/errors.md.
#![allow(
    clippy::unwrap_used,
    reason = "in a test, what is not there is a failure"
)]

mod document;
mod schema_names;
mod schemas;

use chorus_server::{RunningServer, ServerSettings, start_server};
use chorus_wire::{ErrorCode, frame::FrameCode};
use serde_json::Value;
use std::collections::BTreeMap;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

async fn server() -> (RunningServer, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = ServerSettings::with_data_dir(dir.path());
    settings.listen = "127.0.0.1:0".parse().unwrap();
    settings.rate_limit = 0;
    (start_server(settings).await.unwrap(), dir)
}

/// The client needs a TLS provider even without TLS; the first test installs it.
fn client() -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

async fn document(server: &RunningServer) -> Value {
    let url = format!("{}/openapi.json", server.url());
    client()
        .get(url)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap()
}

/// (path, method, operation) of everything the contract has.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let mut found = Vec::new();
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            if METHODS.contains(&method.as_str()) {
                found.push((path.as_str(), method.as_str(), operation));
            }
        }
    }
    found
}

fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str));
            map.values().for_each(|inner| references(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|inner| references(inner, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Invariant 8: a code that clients can meet is explained, and nothing else is.
#[test]
fn the_page_of_errors_and_the_table_say_the_same() {
    let page = include_str!("../../../../docs/errors.md");
    let mut rows = BTreeMap::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [code, status, retryable, meaning] = cells[..] else {
            panic!("{line}")
        };
        let retryable = match retryable {
            "yes" => true,
            "no" => false,
            other => panic!("{other}"),
        };
        // A code of the jobs document may have two statuses.
        let key = (
            code.trim_matches('`').to_owned(),
            status.parse::<u16>().unwrap(),
        );
        assert!(
            rows.insert(key, (retryable, meaning.to_owned())).is_none(),
            "{code} is there twice"
        );
    }
    let hub = ErrorCode::ALL.iter().map(|code| {
        (
            code.as_str(),
            code.status(),
            code.retryable(),
            code.sentence(),
        )
    });
    let frame = FrameCode::ALL.iter().map(|code| {
        (
            code.as_str(),
            code.status(),
            code.retryable(),
            code.sentence(),
        )
    });
    let row = |(code, status, retryable, meaning): (&str, u16, bool, &str)| {
        ((code.to_owned(), status), (retryable, meaning.to_owned()))
    };
    let table: BTreeMap<_, _> = hub.chain(frame).map(row).collect();
    assert_eq!(rows, table);
}

#[tokio::test]
async fn the_contract_is_whole_and_refers_to_nothing_that_is_not_there() {
    let (server, _dir) = server().await;
    let document = document(&server).await;
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 20);
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    let operations = operations(&document);
    assert!(operations.len() >= 24, "{}", operations.len());
    for (path, method, operation) in operations {
        is_whole(&document, path, &format!("{method} {path}"), operation);
    }
    server.stop().await;
}

fn is_whole(document: &Value, path: &str, name: &str, operation: &Value) {
    assert!(
        operation["summary"]
            .as_str()
            .is_some_and(|said| !said.is_empty()),
        "{name} has no summary"
    );
    let tags = document["tags"].as_array().unwrap();
    assert!(
        tags.iter().any(|tag| tag["name"] == operation["tags"][0]),
        "{name}"
    );
    let responses = operation["responses"].as_object().unwrap();
    let good = responses.iter().find(|(status, _)| status.starts_with('2'));
    let content = good.and_then(|(_, response)| response["content"].as_object());
    assert!(
        content.is_some_and(|content| !content.is_empty()),
        "{name} answers nothing"
    );
    for status in ["400", "414", "429", "431", "500", "503"] {
        assert!(
            responses.contains_key(status),
            "{name} does not say {status}"
        );
    }
    let schemes = document["components"]["securitySchemes"]
        .as_object()
        .unwrap();
    let keys = operation["security"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for key in keys.iter().flat_map(|key| key.as_object().unwrap().keys()) {
        assert!(schemes.contains_key(key), "{name}: {key}");
    }
    assert!(
        !needs_key(operation) || responses.contains_key("401"),
        "{name} does not say what happens without a key"
    );
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let in_path: Vec<&str> = parameters
        .filter(|p| p["in"] == "path")
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    assert_eq!(path.matches('{').count(), in_path.len(), "{name}");
    assert!(
        in_path.iter().all(|p| path.contains(&format!("{{{p}}}"))),
        "{name}"
    );
}

/// Whether there is no way in without a key.
fn needs_key(operation: &Value) -> bool {
    operation["security"]
        .as_array()
        .is_some_and(|keys| !keys.is_empty() && !keys.contains(&serde_json::json!({})))
}

/// what the contract has is mounted, and what it has not answers 405 or 404 as JSON.
#[tokio::test]
async fn every_route_of_the_contract_is_there_and_no_other_method_is() {
    let (server, _dir) = server().await;
    let document = document(&server).await;
    let client = client();
    for (path, item) in document["paths"].as_object().unwrap() {
        let url = format!(
            "{}{}",
            server.url(),
            path.replace("{lang}", "en").replace(['{', '}'], "x")
        );
        for method in METHODS {
            let verb = reqwest::Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let reply = client
                .request(verb, &url)
                .header("authorization", "Bearer unknown")
                .send()
                .await
                .unwrap();
            let (status, name) = (reply.status().as_u16(), format!("{method} {path}"));
            assert!(reply.headers().contains_key("x-request-id"), "{name}");
            if item.get(method).is_some() {
                assert!(status != 405 && status < 500, "{name}: {status}");
                let key = needs_key(&item[method]);
                assert!(
                    !key || status == 401,
                    "{name} is open to every client: {status}"
                );
            } else {
                assert_eq!(status, 405, "{name}");
                assert!(reply.headers().contains_key("allow"), "{name}");
                let body: Value = reply.json().await.unwrap();
                let framed = ["/frames", "/handles/", "/orgs"]
                    .iter()
                    .any(|root| path.starts_with(root));
                let market = item
                    .as_object()
                    .unwrap()
                    .values()
                    .any(|operation| operation["tags"][0] == "market");
                let (place, code) = match (framed, market) {
                    (true, _) => ("/code", "method-not-allowed"),
                    (false, true) => ("/error_code", "ERR_METHOD_NOT_ALLOWED"),
                    (false, false) => ("/error/code", "ERR_METHOD_NOT_ALLOWED"),
                };
                assert_eq!(
                    body.pointer(place).and_then(Value::as_str),
                    Some(code),
                    "{name}"
                );
            }
        }
    }
    let nowhere = client
        .get(format!("{}/nowhere", server.url()))
        .send()
        .await
        .unwrap();
    assert_eq!(nowhere.status(), 404);
    assert_eq!(
        nowhere.json::<Value>().await.unwrap()["error"]["code"],
        "ERR_NOT_FOUND"
    );
    server.stop().await;
}

/// The examples that the contract prints are requests that the parsers take.
#[tokio::test]
async fn the_printed_examples_are_valid_requests() {
    let (server, _dir) = server().await;
    let document = document(&server).await;
    let example = |name: &str| {
        let schema = &document["components"]["schemas"][name];
        let example = schema
            .get("example")
            .or_else(|| schema["examples"].get(0))
            .unwrap_or_else(|| panic!("{name}"));
        example.to_string().into_bytes()
    };
    chorus_wire::registration::RegistrationRequest::parse(&example("RegistrationRequest")).unwrap();
    chorus_wire::registration::RegistrationRequest::parse_operator(&example(
        "OperatorRegistration",
    ))
    .unwrap();
    chorus_wire::message::SendRequest::parse(&example("SendRequest")).unwrap();
    chorus_wire::frame::FrameSubmission::parse(&example("FrameSubmission")).unwrap();
    server.stop().await;
}
