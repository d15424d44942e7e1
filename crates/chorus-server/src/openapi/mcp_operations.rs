//! What the OpenAPI document says about the MCP routes: their bodies are JSON-RPC, which the Model Context Protocol defines.

use serde_json::{Value, json};

/// Completes the operations of the MCP routes.
pub fn describe_mcp(document: &mut Value) {
    document["components"]["schemas"]["JsonRpcRequest"] = json_rpc_request();
    document["components"]["schemas"]["JsonRpcReply"] = json_rpc_reply();
    document["components"]["schemas"]["JsonRpcFailure"] = json_rpc_failure();
    let paths = &mut document["paths"];
    describe_call(
        &mut paths["/mcp"]["post"],
        "Call the tools of the hub",
        "One JSON-RPC message of the Model Context Protocol, revision 2026-07-28 or 2025-11-25. Each request is answered by itself: \
         there is no session and no stream.",
        json!({"403": {"description": "An operator's key, or a `Host` or `Origin` that this hub does not allow."}}),
    );
    describe_call(
        &mut paths["/mcp/{channel}"]["post"],
        "Call the tools of a channel",
        "One JSON-RPC message of the Model Context Protocol. The token comes with a delivery of the channel, in `mcp.headers`.",
        json!({"401": {"description": "The token is unknown, has expired, or belongs to another channel."},
            "403": {"description": "A `Host` or `Origin` that this hub does not allow."}}),
    );
    for (path, summary, resource) in [
        (
            "/.well-known/oauth-protected-resource",
            "Get the resource metadata of the hub",
            "this hub",
        ),
        (
            "/.well-known/oauth-protected-resource/mcp",
            "Get the resource metadata of the hub's tools",
            "the tools at `/mcp`",
        ),
        (
            "/.well-known/oauth-protected-resource/mcp/{channel}",
            "Get the resource metadata of a channel's tools",
            "the tools of a channel, whether or not it exists",
        ),
    ] {
        let operation = &mut paths[path]["get"];
        operation["summary"] = json!(summary);
        operation["description"] = json!(format!(
            "The OAuth protected-resource metadata (RFC 9728) of {resource}: which credential it takes and where that is documented."
        ));
        operation["responses"]["200"]["description"] = json!("The metadata.");
    }
    let channel = &mut paths["/.well-known/oauth-protected-resource/mcp/{channel}"]["get"];
    channel["responses"]["404"] = json!({"description": "The text cannot be the id of a channel."});
    for (path, method) in [
        ("/.well-known/oauth-protected-resource/mcp/{channel}", "get"),
        ("/mcp/{channel}", "post"),
    ] {
        let parameters = paths[path][method]["parameters"].as_array_mut();
        for parameter in parameters.into_iter().flatten() {
            if parameter["name"] == "channel" {
                parameter["description"] = json!("The id of the channel.");
            }
        }
    }
}

fn describe_call(operation: &mut Value, summary: &str, description: &str, failures: Value) {
    let reference =
        |name: &str| json!({"schema": {"$ref": format!("#/components/schemas/{name}")}});
    operation["summary"] = json!(summary);
    operation["description"] = json!(description);
    operation["requestBody"] = json!({"required": true, "description": "A JSON-RPC request or notification.",
        "content": {"application/json": reference("JsonRpcRequest")}});
    let mut responses = json!({
        "200": {"description": "The answer to a request.", "content": {"application/json": reference("JsonRpcReply")}},
        "202": {"description": "A notification was accepted. The body is empty."},
        "404": {"description": "The method is not one of the protocol."},
        "406": {"description": "`Accept` does not allow `application/json`. Without the header every answer is JSON too."},
    });
    if let (Value::Object(responses), Value::Object(failures)) = (&mut responses, failures) {
        responses.extend(failures);
    }
    operation["responses"] = responses;
}

fn json_rpc_request() -> Value {
    json!({
        "type": "object",
        "description": "A message of the Model Context Protocol. A notification has no `id`.",
        "required": ["jsonrpc", "method"],
        "properties": {
            "jsonrpc": {"type": "string", "const": "2.0"},
            "id": {"type": ["string", "integer"]},
            "method": {"type": "string"},
            "params": {"type": "object"}
        },
        "example": {"jsonrpc": "2.0", "id": "1", "method": "tools/call",
            "params": {"name": "chorus_inbox", "arguments": {"limit": 10}}}
    })
}

fn json_rpc_reply() -> Value {
    json!({
        "type": "object",
        "description": "The answer to a request: `result` or `error`.",
        "required": ["jsonrpc", "id"],
        "properties": {
            "jsonrpc": {"type": "string", "const": "2.0"},
            "id": {"type": ["string", "integer", "null"]},
            "result": {"type": "object"},
            "error": json_rpc_error()
        }
    })
}

fn json_rpc_failure() -> Value {
    json!({
        "type": "object",
        "description": "A JSON-RPC error. `id` is absent when the message could not be read.",
        "required": ["jsonrpc", "error"],
        "properties": {
            "jsonrpc": {"type": "string", "const": "2.0"},
            "id": {"type": ["string", "integer", "null"]},
            "error": json_rpc_error()
        }
    })
}

fn json_rpc_error() -> Value {
    json!({"type": "object", "required": ["code", "message"],
        "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": {}}})
}
