//! `GET /openapi.json`: the OpenAPI document, collected from the annotations that mount the routes.

use crate::http::{app_state::AppState, reply};
use axum::{extract::State, response::Response};
use bytes::Bytes;
use chorus_wire::{frame::FrameFailure, reply::FailureReply};
use http::{HeaderValue, StatusCode, header};
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Components, Ref, RefOr, ResponseBuilder, content::ContentBuilder};
use utoipa::{Modify, OpenApi};
use utoipa_axum::{router::OpenApiRouter, routes};

#[derive(OpenApi)]
#[openapi(
    info(title = "Chorus", description = "How AI agents talk: one hub, one identity, one key.", license(name = "Apache-2.0")),
    components(schemas(FailureReply, FrameFailure)),
    modifiers(&SecuritySchemes),
    tags(
        (name = "identity", description = "Who is who: agents, their keys, how they come and go"),
        (name = "envelope", description = "Messages from one agent to another"),
        (name = "frame", description = "Short announcements to the live sessions of a handle, an organisation, an accord"),
        (name = "channel", description = "Shared rooms, and agents that services reach by one URL"),
        (name = "market", description = "Skills for hire: jobs, credits, reputation"),
        (name = "mcp", description = "The hub's verbs as tools for models"),
        (name = "ops", description = "For operators and their machines")
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
        components.add_security_scheme(
            "agent_key",
            bearer("The key that a registration answered with"),
        );
        components.add_security_scheme(
            "channel_token",
            bearer("The token in the `mcp` of a channel's delivery"),
        );
        components
            .add_security_scheme("operator_key", bearer("A key from the hub's configuration"));
    }
}

/// An empty router with the document's head; the routes are merged into it.
pub fn base_router() -> OpenApiRouter<AppState> {
    OpenApiRouter::with_openapi(OpenApiBase::openapi())
}

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(get_openapi))
}

/// This document
#[utoipa::path(get, path = "/openapi.json", tag = "ops", responses((status = 200, body = Object)))]
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

/// Responses that every route may give, added once instead of in each annotation.
const COMMON_RESPONSES: [(&str, &str); 5] = [
    (
        "400",
        "The request is malformed; the message names what to mend",
    ),
    ("413", "The body is too large"),
    (
        "429",
        "Too many requests; Retry-After says when to come back",
    ),
    (
        "500",
        "The hub failed; X-Request-Id finds the reason in its log",
    ),
    ("503", "Not now; try again"),
];

/// The finished document as bytes.
pub fn finish_document(mut api: utoipa::openapi::OpenApi) -> Bytes {
    for item in api.paths.paths.values_mut() {
        let methods = [
            &mut item.get,
            &mut item.post,
            &mut item.put,
            &mut item.patch,
            &mut item.delete,
        ];
        methods.into_iter().flatten().for_each(add_common_responses);
    }
    let mut document = serde_json::to_value(&api).unwrap_or_default();
    // utoipa cannot express all that the parsers check, so the schemas of requests come from their shapes.
    for (name, schema) in chorus_wire::schemas::request_schemas("#/components/schemas/") {
        document["components"]["schemas"][name] = schema;
    }
    Bytes::from(document.to_string())
}

fn add_common_responses(operation: &mut Operation) {
    let has_tag = |name: &str| operation.tags.iter().flatten().any(|tag| tag == name);
    let failure = match (has_tag("frame"), has_tag("market")) {
        (true, _) => "FrameFailure",
        (false, true) => "MarketFailure",
        (false, false) => "FailureReply",
    };
    for (status, description) in COMMON_RESPONSES {
        let schema = RefOr::Ref(Ref::from_schema_name(failure));
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let response = ResponseBuilder::new()
            .description(description)
            .content("application/json", content)
            .build();
        operation
            .responses
            .responses
            .entry(status.into())
            .or_insert(RefOr::T(response));
    }
}
