//! `POST /mcp`: one stateless JSON-RPC message per request, authenticated by the agent's key.

use super::tool_call::{SessionHeaders, ToolCall};
use super::tool_span::CallTrace;
use super::{hub_tools::HubToolServer, resource_metadata};
use crate::http::api_error::ApiError;
use crate::http::app_state::AppState;
use crate::http::auth::AuthResult;
use crate::http::body;
use crate::http::client_presence::ClientPresence;
use crate::http::query::QueryParams;
use crate::http::reply::{self, ApiResult};
use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chorus_hub::Principal;
use chorus_wire::reply::FailureReply;
use chorus_wire::{Error, ErrorCode, limits};
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full, Limited};
use rmcp::ServerHandler;
use rmcp::model::{ErrorCode as RpcErrorCode, RequestId};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(call_hub_tools))
}

/// The hub's verbs as tools: one JSON-RPC message of the Model Context Protocol, revision 2026-07-28 or 2025-11-25
#[utoipa::path(post, path = "/mcp", tag = "mcp", security(("agent_key" = ["any"])), request_body = Object,
    params(("tools" = Option<String>, Query, description = "Only these groups of tools: messages, frames, channels, market, with commas between them", example = "messages,frames"),
        ("MCP-Protocol-Version" = Option<String>, Header, description = "The revision that the message is of")),
    responses((status = 200, body = Object, description = "The answer to a request"),
        (status = 202, body = Object, description = "A notification was taken; the body is empty"),
        (status = 401, body = FailureReply, description = "WWW-Authenticate names the resource's metadata"),
        (status = 403, body = FailureReply, description = "An operator's key, another Host or another Origin")))]
async fn call_hub_tools(State(state): State<AppState>, request: Request) -> ApiResult {
    let (mut parts, body) = request.into_parts();
    let auth = AuthResult::from_request_parts(&mut parts, &state).await?;
    let principal = match auth.outcome {
        Ok(Principal::Anonymous) => {
            return Ok(unauthorized_response(
                &state,
                "/mcp",
                ErrorCode::Unauthorized.into(),
            ));
        }
        Err(error) if error.code == ErrorCode::Unauthorized => {
            return Ok(unauthorized_response(&state, "/mcp", error));
        }
        outcome => outcome?,
    };
    let agent_id = principal.require_agent()?.agent_id.to_string();
    let session = SessionHeaders::from_headers(&parts.headers);
    let query = QueryParams::parse(parts.uri.query().unwrap_or_default())?;
    let groups = query.get_single("tools")?.map(str::parse).transpose()?;
    let presence = parts.extensions.get::<ClientPresence>().cloned();
    let presence = presence.ok_or(ErrorCode::Internal)?;
    let body = read_message(&state, &parts, body, limits::BODY_BYTES).await?;
    if let Some(request_id) = find_cancelled(&body) {
        let label = session.label_call(request_id);
        state.waiting_calls.cancel(&agent_id, &label);
    }
    let call = ToolCall {
        state: state.clone(),
        principal,
        session,
        request_id: String::new(),
        presence,
        trace: CallTrace::of_request(),
    };
    let handler = HubToolServer {
        call,
        groups: groups.unwrap_or_default(),
    };
    serve_body(handler, parts, body, limits::BODY_BYTES).await
}

/// The request that a notification cancels. The library drops notifications where it keeps no sessions.
fn find_cancelled(body: &[u8]) -> Option<String> {
    let message: CancelNotification = serde_json::from_slice(body).ok()?;
    (message.method == "notifications/cancelled").then(|| message.params.request_id.to_string())
}

#[derive(Deserialize)]
struct CancelNotification {
    method: String,
    params: CancelledRequest,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CancelledRequest {
    request_id: RequestId,
}

/// A 401 whose challenge points to the resource metadata.
pub fn unauthorized_response(state: &AppState, path: &str, error: Error) -> Response {
    let mut response = ApiError::from(error).into_response();
    response.headers_mut().insert(
        header::WWW_AUTHENTICATE,
        resource_metadata::auth_challenge(state, path),
    );
    response
}

/// Passes one message to its handler.
pub async fn serve_message<H: ServerHandler + Clone>(
    state: &AppState,
    handler: H,
    parts: Parts,
    body: Body,
    max_bytes: usize,
) -> ApiResult {
    let body = read_message(state, &parts, body, max_bytes).await?;
    serve_body(handler, parts, body, max_bytes).await
}

async fn serve_body<H: ServerHandler + Clone>(
    handler: H,
    mut parts: Parts,
    body: Bytes,
    max_bytes: usize,
) -> ApiResult {
    if let Err(fault) = serde_json::from_slice::<serde::de::IgnoredAny>(&body) {
        return rpc_error(
            StatusCode::BAD_REQUEST,
            RpcErrorCode::PARSE_ERROR,
            &format!("the body is not JSON: {fault}"),
        );
    }
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(max_bytes)
        // The front has checked both.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    // The answer is always JSON; the library wants both media types named.
    if accepts_json(&parts.headers) {
        let both = HeaderValue::from_static("application/json, text/event-stream");
        parts.headers.insert(header::ACCEPT, both);
    }
    // The handler holds the principal; the key itself is not passed on.
    parts.headers.remove(header::AUTHORIZATION);
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::<NeverSessionManager>::default(),
        config,
    );
    let response = service
        .handle(Request::from_parts(parts, Full::new(body)))
        .await;
    ensure_json_error(response.map(Body::new)).await
}

/// Whether the client takes JSON: it names it, or any media type, or none.
fn accepts_json(headers: &HeaderMap) -> bool {
    let Some(accept) = headers.get(header::ACCEPT) else {
        return true;
    };
    let accept = accept.to_str().unwrap_or_default();
    ["application/json", "application/*", "*/*"]
        .iter()
        .any(|media_type| accept.contains(media_type))
}

async fn read_message(
    state: &AppState,
    parts: &Parts,
    body: Body,
    max_bytes: usize,
) -> Result<Bytes, ApiError> {
    body::check_json_type(&parts.headers)?;
    body::read_request_body(state, parts, body, max_bytes).await
}

/// Turns the library's plain-text errors into JSON-RPC errors, which clients of this route expect (failure 26).
async fn ensure_json_error(response: Response) -> ApiResult {
    let is_json = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|media_type| media_type.as_bytes().starts_with(b"application/json"));
    if is_json || !(response.status().is_client_error() || response.status().is_server_error()) {
        return Ok(response);
    }
    let status = match response.status() {
        // The body is JSON but no JSON-RPC message.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => StatusCode::BAD_REQUEST,
        status => status,
    };
    let text = Limited::new(response.into_body(), limits::DETAIL_CHARS)
        .collect()
        .await;
    let text = text
        .map(|text| String::from_utf8_lossy(&text.to_bytes()).into_owned())
        .unwrap_or_default();
    rpc_error(status, RpcErrorCode::INVALID_REQUEST, &text)
}

fn rpc_error(status: StatusCode, code: RpcErrorCode, message: &str) -> ApiResult {
    let body: Value = json!({"jsonrpc": "2.0", "error": {"code": code.0, "message": message}});
    reply::bare_json(status, &body)
}
