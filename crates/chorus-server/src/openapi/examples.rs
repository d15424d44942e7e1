//! Examples of requests and replies, by operation. They were recorded from a hub; a test validates them against the schemas.

use serde_json::{Map, Value};
use std::sync::LazyLock;

/// `{"<operationId>": {"request": <body>, "<status>": <body>}}`. A request whose schema has an example has none here.
static EXAMPLES: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).unwrap_or_default());

/// Adds the example of the request body of an operation.
pub fn add_request_example(operation_id: &str, operation: &mut Value) {
    let content = operation.pointer_mut("/requestBody/content/application~1json");
    add_example(content, &EXAMPLES[operation_id]["request"]);
}

/// Adds the examples of the replies of an operation.
pub fn add_reply_examples(operation_id: &str, responses: &mut Map<String, Value>) {
    for (status, response) in responses {
        let content = response.pointer_mut("/content/application~1json");
        add_example(content, &EXAMPLES[operation_id][status.as_str()]);
    }
}

fn add_example(content: Option<&mut Value>, example: &Value) {
    if let (Some(content), false) = (content, example.is_null()) {
        content["example"] = example.clone();
    }
}
