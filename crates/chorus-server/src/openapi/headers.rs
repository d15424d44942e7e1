//! The headers of requests and responses, written once in `components` and referred to by every operation that has them.

use chorus_wire::limits;
use serde_json::{Map, Value, json};

/// Shared headers of responses: the name in `components`, the header, its description, its schema.
fn response_headers() -> [(&'static str, &'static str, &'static str, Value); 5] {
    [
        (
            "RequestId",
            "X-Request-Id",
            "Identifies the request in the hub's log. The client's own `X-Request-Id` is kept when it is 1 to 64 letters, digits, `.`, `_` or `-`.",
            json!({"type": "string", "maxLength": 64}),
        ),
        (
            "RateLimit",
            "RateLimit",
            "What is left of the caller's budget: `r` requests, and `t` seconds until it is full again. Absent on a hub without a rate limit.",
            json!({"type": "string", "examples": ["\"default\";r=598;t=1"]}),
        ),
        (
            "RateLimitPolicy",
            "RateLimit-Policy",
            "The caller's budget: `q` requests in `w` seconds. Absent on a hub without a rate limit.",
            json!({"type": "string", "examples": ["\"default\";q=600;w=60"]}),
        ),
        (
            "RetryAfter",
            "Retry-After",
            "After how many seconds to try again.",
            json!({"type": "integer", "minimum": 1}),
        ),
        (
            "Challenge",
            "WWW-Authenticate",
            "The scheme that is asked for: `Bearer`. On `/mcp` it also names the metadata of the protected resource.",
            json!({"type": "string", "examples": ["Bearer realm=\"chorus\""]}),
        ),
    ]
}

/// The `components/headers` of the document.
pub fn header_components() -> Map<String, Value> {
    response_headers()
        .into_iter()
        .map(|(component, _, description, schema)| {
            let header = json!({"description": description, "schema": schema});
            (component.to_owned(), header)
        })
        .collect()
}

/// Adds the headers that a response with this status has.
pub fn add_response_headers(status: &str, is_rate_limited: bool, response: &mut Value) {
    if response.get("$ref").is_some() {
        return;
    }
    for (component, name, _, _) in response_headers() {
        let applies = match component {
            "RateLimit" | "RateLimitPolicy" => is_rate_limited,
            "RetryAfter" => matches!(status, "429" | "503"),
            "Challenge" => status == "401",
            _ => true,
        };
        if applies {
            response["headers"][name] =
                json!({"$ref": format!("#/components/headers/{component}")});
        }
    }
}

/// The `components/parameters` of the document: request headers that several routes take.
pub fn parameter_components() -> Map<String, Value> {
    let parameters = json!({
        "IdempotencyKey": {
            "name": "Idempotency-Key",
            "in": "header",
            "required": false,
            "description": "Makes a repeated request safe. For 24 hours the same key with the same body gets the first answer again; with another body it is refused with 409.",
            "schema": {"type": "string", "minLength": 1, "maxLength": limits::IDEMPOTENCY_KEY_CHARS, "pattern": "^[!-~]+$"}
        },
        "LastEventId": {
            "name": "Last-Event-ID",
            "in": "header",
            "required": false,
            "description": "The `id` of the last event that the client has. The stream first replays everything after it. It takes precedence over `since`.",
            "schema": {"type": "integer", "format": "int64", "minimum": 0}
        }
    });
    parameters.as_object().cloned().unwrap_or_default()
}

/// Adds the header that every POST takes which changes something, unless the route describes it itself.
pub fn add_idempotency_key(operation: &mut Value) {
    if operation.get("parameters").is_none() {
        operation["parameters"] = json!([]);
    }
    let Some(parameters) = operation["parameters"].as_array_mut() else {
        return;
    };
    if !has_idempotency_key(parameters) {
        parameters
            .push(json!({"name": "Idempotency-Key", "in": "header", "schema": {"type": "string"}}));
    }
}

pub fn has_idempotency_key(parameters: &[Value]) -> bool {
    parameters
        .iter()
        .any(|parameter| parameter["name"] == "Idempotency-Key")
}

/// Replaces the parameters of an operation that are in `components` by references.
pub fn refer_to_shared_parameters(path: &str, parameters: &mut [Value]) {
    for parameter in parameters {
        let component = match parameter["name"].as_str() {
            Some("Idempotency-Key") => "IdempotencyKey",
            // The ids of frames have another form, so that route describes the header itself.
            Some("Last-Event-ID") if !path.starts_with("/handles/") => "LastEventId",
            Some(_) | None => continue,
        };
        *parameter = json!({"$ref": format!("#/components/parameters/{component}")});
    }
}
