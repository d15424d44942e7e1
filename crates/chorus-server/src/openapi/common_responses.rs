//! Responses that many routes share, added to each operation by what the operation has: a body, a key, a rate limit.

use super::failure_form::FailureForm;
use super::headers;
use crate::http::front;
use serde_json::{Map, Value, json};

/// What decides which common responses an operation has.
pub struct OperationTraits {
    has_body: bool,
    takes_key: bool,
    /// A key may be refused: it is of the other kind, or lacks the scope.
    refuses_some_keys: bool,
    takes_idempotency_key: bool,
    pub is_rate_limited: bool,
}

impl OperationTraits {
    pub fn of_operation(path: &str, operation: &Value) -> Self {
        let alternatives: Vec<&Map<String, Value>> = operation["security"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
            .collect();
        let accepts = |scheme: &str| alternatives.iter().any(|keys| keys.contains_key(scheme));
        let is_open = alternatives.iter().all(|keys| keys.is_empty())
            || alternatives.iter().any(|keys| keys.is_empty());
        Self {
            has_body: operation.get("requestBody").is_some(),
            takes_key: alternatives.iter().any(|keys| !keys.is_empty()),
            refuses_some_keys: needs_scope(&alternatives)
                || !is_open && accepts("agent_key") != accepts("operator_key"),
            takes_idempotency_key: operation["parameters"]
                .as_array()
                .is_some_and(|parameters| headers::has_idempotency_key(parameters)),
            is_rate_limited: front::is_rate_limited(path),
        }
    }
}

/// Whether a key of an agent needs a certain scope.
fn needs_scope(alternatives: &[&Map<String, Value>]) -> bool {
    let mut scopes = alternatives.iter().filter_map(|keys| keys.get("agent_key"));
    scopes.any(|scopes| scopes.get(0).is_some_and(|scope| scope != "any"))
}

/// A response that every operation with a certain trait may give.
struct CommonResponse {
    status: &'static str,
    /// Of the shared response in `components`.
    name: &'static str,
    description: &'static str,
    applies: fn(&OperationTraits) -> bool,
}

const COMMON_RESPONSES: [CommonResponse; 13] = [
    CommonResponse {
        status: "400",
        name: "BadRequest",
        description: "The request is malformed. The message names the field, parameter or header at fault.",
        applies: |_| true,
    },
    CommonResponse {
        status: "401",
        name: "Unauthorized",
        description: "The key is missing, malformed or unknown.",
        applies: |traits| traits.takes_key,
    },
    CommonResponse {
        status: "403",
        name: "Forbidden",
        description: "The key is valid, but this operation needs a key of another kind, of another agent or with another scope.",
        applies: |traits| traits.refuses_some_keys,
    },
    CommonResponse {
        status: "403",
        name: "ForeignOrigin",
        description: "The request comes from a web page, or asks for a host, that this hub does not answer.",
        applies: |_| true,
    },
    CommonResponse {
        status: "408",
        name: "RequestTimeout",
        description: "The body did not arrive completely within 30 seconds.",
        applies: |traits| traits.has_body,
    },
    CommonResponse {
        status: "409",
        name: "IdempotencyConflict",
        description: "The Idempotency-Key was used with another body, or its first answer was lost.",
        applies: |traits| traits.takes_idempotency_key,
    },
    CommonResponse {
        status: "413",
        name: "ContentTooLarge",
        description: "The body is larger than this hub accepts.",
        applies: |traits| traits.has_body,
    },
    CommonResponse {
        status: "414",
        name: "UriTooLong",
        description: "The path and the query are longer than this hub accepts.",
        applies: |_| true,
    },
    CommonResponse {
        status: "415",
        name: "UnsupportedMediaType",
        description: "The body is not declared as JSON by its `Content-Type`.",
        applies: |traits| traits.has_body,
    },
    CommonResponse {
        status: "429",
        name: "TooManyRequests",
        description: "Too many requests. `Retry-After` says how many seconds to wait.",
        applies: |_| true,
    },
    CommonResponse {
        status: "431",
        name: "HeadersTooLarge",
        description: "The headers are larger, or more, than this hub accepts.",
        applies: |_| true,
    },
    CommonResponse {
        status: "500",
        name: "InternalError",
        description: "The hub failed. The operator finds the reason in the log by the `X-Request-Id`.",
        applies: |_| true,
    },
    CommonResponse {
        status: "503",
        name: "Unavailable",
        description: "The hub cannot answer right now. `Retry-After` says how many seconds to wait.",
        applies: |_| true,
    },
];

/// Adds the common responses that the operation does not describe itself, and the error body of those that it does.
pub fn add_common_responses(
    path: &str,
    traits: &OperationTraits,
    responses: &mut Map<String, Value>,
    shared: &mut Map<String, Value>,
) {
    for (status, response) in responses.iter_mut() {
        if status.starts_with(['4', '5']) && response.get("content").is_none() {
            response["content"] = FailureForm::for_response(path, status).content();
        }
    }
    for common in COMMON_RESPONSES {
        if responses.contains_key(common.status) || !(common.applies)(traits) {
            continue;
        }
        let form = FailureForm::for_response(path, common.status);
        let name = format!("{}{}", form.name_prefix(), common.name);
        let reference = json!({"$ref": format!("#/components/responses/{name}")});
        shared.entry(name).or_insert_with(
            || json!({"description": common.description, "content": form.content()}),
        );
        responses.insert(common.status.to_owned(), reference);
    }
}

/// The status of a shared response, by its name.
pub fn status_of_shared(name: &str) -> Option<&'static str> {
    COMMON_RESPONSES
        .iter()
        .find(|common| name.ends_with(common.name))
        .map(|common| common.status)
}
