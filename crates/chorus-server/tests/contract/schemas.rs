//! The JSON Schemas that a hub serves: each stands alone, and its examples satisfy it.

use crate::{client, references, server};
use serde_json::Value;

#[tokio::test]
async fn every_public_object_has_a_schema_that_stands_alone() {
    let (server, _dir) = server().await;
    let get = async |path: &str| {
        let answer = client().get(format!("{}{path}", server.url())).send().await;
        answer.unwrap().json::<Value>().await.unwrap()
    };
    let list = get("/schemas").await;
    let paths: Vec<&str> = list["schemas"]
        .as_array()
        .unwrap()
        .iter()
        .map(|schema| schema["path"].as_str().unwrap())
        .collect();
    for name in [
        "envelope",
        "agent-card",
        "frame",
        "agent-advisory",
        "flush-executed",
        "channel-delivery",
        "callback-event",
        "job-request",
        "job-result",
        "credit-transfer",
    ] {
        let path = format!("/schemas/{name}.json");
        assert!(paths.contains(&path.as_str()), "{path}: {paths:?}");
    }
    for path in paths {
        let schema = get(path).await;
        let id = schema["$id"].as_str().unwrap();
        assert!(id.ends_with(path), "{id}");
        assert!(jsonschema::meta::is_valid(&schema), "{path}");
        let mut found = Vec::new();
        references(&schema, &mut found);
        for pointer in found {
            let target = schema.pointer(pointer.trim_start_matches('#'));
            assert!(target.is_some(), "{path}: {pointer}");
        }
        let validator = jsonschema::validator_for(&schema).unwrap();
        for example in schema["examples"].as_array().into_iter().flatten() {
            assert!(validator.is_valid(example), "{path}: {example}");
        }
    }
    // ENV-23: the documents call it so, and its bounds are theirs.
    let envelope = get("/schemas/envelope.schema.json").await;
    assert_eq!(envelope["title"], "Envelope");
    let fields = &envelope["properties"];
    for (name, keyword, bound) in [
        ("original_text", "minLength", 1),
        ("original_text", "maxLength", 10_000),
        ("cultural_context", "minLength", 10),
        ("cultural_context", "maxLength", 500),
        ("conversation_id", "maxLength", 64),
        ("turn_number", "minimum", 1),
    ] {
        assert_eq!(fields[name][keyword], bound, "{name} {keyword}: {envelope}");
        assert!(fields[name]["type"].is_string(), "{name} is never null");
    }
    assert_eq!(envelope["additionalProperties"], false);
    let unknown = client().get(format!("{}/schemas/nothing.json", server.url()));
    assert_eq!(unknown.send().await.unwrap().status(), 404);
    server.stop().await;
}
