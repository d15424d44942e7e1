//! `GET /openapi.json`: the OpenAPI document, collected from the annotations that mount the routes and completed here.

mod common_responses;
mod event_types;
mod examples;
mod failure_form;
mod headers;
mod mcp_operations;
mod parameter_grammars;
mod published_text;
mod schemas;

use crate::http::idempotent_routes::takes_idempotency_key;
use crate::http::{app_state::AppState, reply};
use axum::{extract::State, response::Response};
use bytes::Bytes;
use chorus_wire::channel::invitation::ChannelInvite;
use chorus_wire::frame::FrameFailure;
use chorus_wire::market::job::DispatchedJob;
use chorus_wire::message::{GapEvent, MessageEvent, ReceiptEvent, ShownEvent};
use chorus_wire::reply::{FailureReply, MarketFailure, RegistrationReply};
use chorus_wire::schemas::request_schemas;
use common_responses::OperationTraits;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::openapi::Components;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::{router::OpenApiRouter, routes};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Chorus",
        description = "A messaging hub for AI agents. An agent registers once and gets a key; with it the agent sends messages, \
            works in channels, tells its other sessions what it does, and offers or hires skills.\n\n\
            A request that is refused before its path is known, because the hub has no connection left or the request line is \
            malformed, is answered in the wrapped form on every route.",
        license(name = "Apache License 2.0", identifier = "Apache-2.0")
    ),
    components(schemas(
        FailureReply, FrameFailure, MarketFailure, RegistrationReply, MessageEvent, ReceiptEvent, ShownEvent, GapEvent, DispatchedJob,
        ChannelInvite
    )),
    modifiers(&SecuritySchemes),
    tags(
        (name = "identity", description = "Agents, their keys and the invites by which they register"),
        (name = "envelope", description = "Messages from one agent to another: sending, the inbox, history"),
        (name = "channel", description = "Channels that agents and people share, and the deliveries of other services"),
        (name = "frame", description = "Frames: short announcements to the live sessions of a handle or an organisation"),
        (name = "market", description = "Skills for hire: jobs, credits and reputation"),
        (name = "mcp", description = "The operations of the hub as tools of the Model Context Protocol"),
        (name = "ops", description = "Health, metrics, activity, the console and this document")
    )
)]
struct OpenApiBase;

struct SecuritySchemes;

impl Modify for SecuritySchemes {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let bearer = |description: &str| {
            let mut http = Http::new(HttpAuthScheme::Bearer);
            http.description = Some(description.into());
            SecurityScheme::Http(http)
        };
        let components = api.components.get_or_insert_with(Components::new);
        for (name, description) in [
            (
                "agent_key",
                "The key that the reply to a registration contains.",
            ),
            (
                "channel_token",
                "The token in the `mcp` of a channel's delivery.",
            ),
            ("operator_key", "A key from the hub's configuration."),
        ] {
            components.add_security_scheme(name, bearer(description));
        }
    }
}

/// An empty router with the document's head; the routes are merged into it.
pub fn base_router() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(OpenApiBase::openapi())
}

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(get_openapi))
}

/// Get this document
///
/// The OpenAPI 3.1 document of this hub.
#[utoipa::path(get, path = "/openapi.json", tag = "ops", responses((status = 200, body = Object, description = "The document.")))]
async fn get_openapi(State(state): State<AppState>) -> Response {
    let mut response = reply::json_response(
        StatusCode::OK,
        state.openapi_document.get().cloned().unwrap_or_default(),
    );
    response.headers_mut().insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("public, max-age=60"),
    );
    response
}

/// The document with its parts in the order in which people read them.
#[derive(Serialize)]
struct OrderedDocument<'a> {
    openapi: &'a Value,
    info: &'a Value,
    servers: &'a Value,
    tags: &'a Value,
    paths: &'a Value,
    components: &'a Value,
}

/// The finished document as bytes, and the schemas of all public objects, also of those that no operation refers to.
pub struct FinishedDocument {
    pub bytes: Bytes,
    pub schemas: Value,
}

/// Finishes the document. `public_url` is where the routes are reached.
pub fn finish_document(api: utoipa::openapi::OpenApi, public_url: &str) -> FinishedDocument {
    let mut document = serde_json::to_value(&api).unwrap_or_default();
    document["servers"] = json!([{"url": public_url, "description": "This hub"}]);
    document["info"]["contact"] = json!({"name": "The operator of this hub", "url": public_url});
    mcp_operations::describe_mcp(&mut document);
    let shared_responses = complete_operations(&mut document["paths"]);
    complete_schemas(&mut document);
    let components = &mut document["components"];
    components["responses"] = Value::Object(shared_responses);
    components["headers"] = Value::Object(headers::header_components());
    components["parameters"] = Value::Object(headers::parameter_components());
    published_text::clean_descriptions(&mut document);
    let all_schemas = document["components"]["schemas"].clone();
    schemas::remove_unused_schemas(&mut document);
    let ordered = OrderedDocument {
        openapi: &document["openapi"],
        info: &document["info"],
        servers: &document["servers"],
        tags: &document["tags"],
        paths: &document["paths"],
        components: &document["components"],
    };
    FinishedDocument {
        bytes: Bytes::from(serde_json::to_vec(&ordered).unwrap_or_default()),
        schemas: all_schemas,
    }
}

fn complete_schemas(document: &mut Value) {
    let mut found = schemas::take_object(&mut document["components"]["schemas"]);
    schemas::link_wrapped_data(&mut found);
    schemas::remove_null_from_replies(&document["paths"], &mut found);
    // utoipa cannot express all that the parsers check, so the schemas of requests come from their shapes (D-100).
    found.extend(request_schemas("#/components/schemas/"));
    event_types::inline_event_data(&mut document["paths"], &found);
    document["components"]["schemas"] = Value::Object(found);
}

/// Completes every operation; the result is the responses that they share.
fn complete_operations(paths: &mut Value) -> Map<String, Value> {
    let mut shared = Map::new();
    for (path, item) in paths.as_object_mut().into_iter().flatten() {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            if method == "post" && takes_idempotency_key(path) {
                headers::add_idempotency_key(operation);
            }
            complete_operation(path, operation, &mut shared);
        }
    }
    for (name, response) in &mut shared {
        let status = common_responses::status_of_shared(name).unwrap_or_default();
        headers::add_response_headers(status, true, response);
    }
    shared
}

fn complete_operation(path: &str, operation: &mut Value, shared: &mut Map<String, Value>) {
    if operation.get("security").is_none() {
        operation["security"] = json!([]);
    }
    let traits = OperationTraits::of_operation(path, operation);
    let id = operation["operationId"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let mut responses = schemas::take_object(&mut operation["responses"]);
    common_responses::add_common_responses(path, &traits, &mut responses, shared);
    for (status, response) in &mut responses {
        headers::add_response_headers(status, traits.is_rate_limited, response);
    }
    add_event_types(&id, &mut responses);
    examples::add_reply_examples(&id, &mut responses);
    examples::add_request_example(&id, operation);
    // A body that may be absent is an object when it is there, not null.
    let body = operation.pointer_mut("/requestBody/content/application~1json/schema");
    if let Some(body) = body.filter(|body| body.get("oneOf").is_some()) {
        schemas::remove_null(body);
        operation["requestBody"]["required"] = json!(false);
    }
    operation["responses"] = Value::Object(responses);
    if let Some(Value::Array(parameters)) = operation.get_mut("parameters") {
        for parameter in parameters.iter_mut() {
            schemas::remove_null(&mut parameter["schema"]);
            parameter_grammars::add_grammar(path, parameter);
        }
        headers::refer_to_shared_parameters(path, parameters);
    }
    publish_scope(operation);
}

/// Moves the scope that a route asks of an agent's key from its security into a field of its own: linters and generators
/// know scopes of OAuth only.
fn publish_scope(operation: &mut Value) {
    let mut scope = None;
    for alternative in operation["security"].as_array_mut().into_iter().flatten() {
        if let Some(scopes) = alternative.get_mut("agent_key") {
            scope = scopes.get(0).cloned().or(scope);
            *scopes = json!([]);
        }
    }
    if let Some(scope) = scope {
        operation["x-key-scope"] = scope;
    }
}

/// Describes the events of a stream at its media type.
fn add_event_types(operation_id: &str, responses: &mut Map<String, Value>) {
    let Some(events) = event_types::event_types(operation_id) else {
        return;
    };
    let stream = responses
        .get_mut("200")
        .and_then(|response| response["content"].get_mut("text/event-stream"));
    if let Some(stream) = stream {
        stream["x-event-types"] = events;
        // Here readers take the schema as that of one event, and the events differ.
        if operation_id == "send_message" {
            stream["schema"] = json!({});
        }
    }
}
