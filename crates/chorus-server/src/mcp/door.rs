//! `POST /mcp`: one request, one answer, nothing kept in between. Who asks is in the key of every request.

use super::call::{Call, From};
use super::{hub::Tools, metadata, origin};
use crate::auth::Asked;
use crate::reply::{self, Answer, Refused};
use crate::{body, doors::Doors};
use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use chorus_hub::Principal;
use chorus_wire::reply::Failure;
use chorus_wire::{Code, Error, limits};
use http::{HeaderMap, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full, Limited};
use rmcp::ServerHandler;
use rmcp::model::ErrorCode;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default().routes(routes!(tools))
}

/// The hub's verbs as tools: one JSON-RPC message of the Model Context Protocol, revision 2026-07-28 or 2025-11-25
#[utoipa::path(post, path = "/mcp", tag = "mcp", security(("agent_key" = [])), request_body = Object,
    params(("MCP-Protocol-Version" = Option<String>, Header, description = "The revision that the message is of")),
    responses((status = 200, body = Object, description = "The answer to a request"),
        (status = 202, body = Object, description = "A notification was taken; the body is empty"),
        (status = 401, body = Failure, description = "WWW-Authenticate names the resource's metadata"),
        (status = 403, body = Failure, description = "An operator's key, another Host or another Origin")))]
async fn tools(State(doors): State<Doors>, request: Request) -> Answer {
    let (mut parts, body) = request.into_parts();
    let Asked(asked) = Asked::from_request_parts(&mut parts, &doors).await?;
    let who = match asked {
        Ok(Principal::Anyone) => return Ok(unknown(&doors, "/mcp", Code::Unauthorized.into())),
        Err(error) if error.code == Code::Unauthorized => {
            return Ok(unknown(&doors, "/mcp", error));
        }
        asked => asked?,
    };
    who.agent()?;
    let from = From::of(&parts.headers);
    let handler = Tools(Call {
        doors: doors.clone(),
        who,
        from,
    });
    serve(&doors, handler, parts, body, limits::BODY_BYTES).await
}

/// 401 with the way to the metadata.
pub fn unknown(doors: &Doors, path: &str, error: Error) -> Response {
    let mut response = Refused::from(error).into_response();
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, metadata::challenge(doors, path));
    response
}

/// Passes one message to its handler.
pub async fn serve<H: ServerHandler + Clone>(
    doors: &Doors,
    handler: H,
    mut parts: Parts,
    body: Body,
    most: usize,
) -> Answer {
    let body = read(&parts.headers, body, most).await?;
    if let Err(fault) = serde_json::from_slice::<serde::de::IgnoredAny>(&body) {
        return said(
            StatusCode::BAD_REQUEST,
            ErrorCode::PARSE_ERROR,
            &format!("the body is not JSON: {fault}"),
        );
    }
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(most)
        .with_allowed_hosts(origin::hosts(doors, &parts.headers))
        .with_allowed_origins(origin::origins(doors))
        .enforce_origin_validation();
    // What is known of the caller is in the handler; the key itself goes no further than here.
    parts.headers.remove(header::AUTHORIZATION);
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::<NeverSessionManager>::default(),
        config,
    );
    let answer = service
        .handle(Request::from_parts(parts, Full::new(body)))
        .await;
    worded(answer.map(Body::new)).await
}

async fn read(headers: &HeaderMap, body: Body, most: usize) -> Result<Bytes, Refused> {
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > most) {
        body::drain(body);
        return Err(Code::TooLarge.into());
    }
    match tokio::time::timeout(limits::REQUEST_DEADLINE, Limited::new(body, most).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(fault)) if fault.is::<http_body_util::LengthLimitError>() => {
            Err(Code::TooLarge.into())
        }
        Ok(Err(_)) => Err(Error::validation("the body broke off").into()),
        Err(_) => Err(Code::RequestTimeout.into()),
    }
}

/// What the library says in plain text is said as JSON-RPC, since that is what clients read here (failure 26).
async fn worded(answer: Response) -> Answer {
    let is_json = answer
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|of| of.as_bytes().starts_with(b"application/json"));
    if is_json || !(answer.status().is_client_error() || answer.status().is_server_error()) {
        return Ok(answer);
    }
    let status = match answer.status() {
        // A body that is JSON and no message.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => StatusCode::BAD_REQUEST,
        status => status,
    };
    let text = Limited::new(answer.into_body(), limits::DETAIL_CHARS)
        .collect()
        .await;
    let text = text
        .map(|text| String::from_utf8_lossy(&text.to_bytes()).into_owned())
        .unwrap_or_default();
    said(status, ErrorCode::INVALID_REQUEST, &text)
}

fn said(status: StatusCode, code: ErrorCode, message: &str) -> Answer {
    let body: Value = json!({"jsonrpc": "2.0", "error": {"code": code.0, "message": message}});
    reply::bare(status, &body)
}
