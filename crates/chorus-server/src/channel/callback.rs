//! Callbacks: what members post back, one event or a stream of them, and callbacks that stand.

use crate::http::api_error::ApiError;
use crate::http::path_params::PathParamPair;
use crate::http::reply::{self, ApiResult};
use crate::http::{
    admission, app_state::AppState, auth::RequireKey, body::JsonBytes, idempotency::IdempotencyHeader,
    rate_limit::CallerId,
};
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use bytes::BytesMut;
use chorus_hub::channel::callback::{self, CallbackToken};
use chorus_wire::channel::persistent_callback::PersistentCallback;
use chorus_wire::reply::{FailureReply, SuccessReply};
use chorus_wire::{Code, Error, limits, secret::Secret};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::json;
use std::time::Duration;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(post_callback_event))
        .routes(routes!(create_persistent_callback))
}

/// One of the document's five events; extra fields are ignored.
#[derive(ToSchema)]
#[schema(example = json!({"type": "message", "content": "The weather in Oslo is 3°C and cloudy."}))]
#[expect(
    dead_code,
    reason = "it describes the body in the contract; wire/channel/event.rs reads it"
)]
struct CallbackEvent {
    /// `message`, `tool_call`, `tool_result`, `status` or `error`.
    r#type: String,
    /// Of a message and of a tool's result.
    content: Option<String>,
    /// Of a tool call, and of its result the same.
    id: Option<String>,
    /// Of a tool call.
    name: Option<String>,
    args: Option<serde_json::Value>,
    status: Option<String>,
    /// Of an error.
    message: Option<String>,
    code: Option<String>,
    /// Beside the content of a message: A2A parts.
    parts: Option<Vec<serde_json::Value>>,
    /// How the agent presents itself: name, avatar, capabilities.
    agent: Option<serde_json::Value>,
}

/// Answer in a channel: the URL is the credential; as `application/x-ndjson`, an event a line for as long as it takes
#[utoipa::path(post, path = "/channels/{id}/inbox/{token}", tag = "channel", request_body = CallbackEvent,
    params(("id" = String, Path), ("token" = String, Path, description = "The `tok_…` of the callback"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same key and event are heard once, for 24 hours")),
    responses((status = 200, body = Object, description = "It is in the channel's history"),
        (status = 404, body = FailureReply, description = "No such callback"),
        (status = 409, body = FailureReply, description = "The Idempotency-Key was used with another event"),
        (status = 410, body = FailureReply, description = "It expired, or its member or channel is gone"),
        (status = 429, body = FailureReply, description = "Too many events, or too many streams of this member")))]
async fn post_callback_event(State(state): State<AppState>, request: Request) -> ApiResult {
    let (mut parts, content) = request.into_parts();
    let path = Path::<(String, String)>::from_request_parts(&mut parts, &state).await;
    let (id, token) = path.map(|Path(path)| path).unwrap_or_default();
    // Before anything of the body is looked at: whoever guesses learns nothing, whatever it sends.
    let callback_token = match CallbackToken::find(&state.hub, &id, &Secret::new(token)).await {
        Ok(callback_token) => callback_token,
        Err(error) => {
            if error.code == Code::NotFound {
                admission::spend_address_budget(&state, &parts).await?;
            }
            return Err(error.into());
        }
    };
    let budget =
        admission::spend_caller_budget(&state, CallerId::Connection(callback_token.member_id()))
            .await?;
    let event_count = if is_ndjson(&parts.headers) {
        read_ndjson(&state, &callback_token, content).await?
    } else {
        let idempotency_key = IdempotencyHeader::from_request_parts(&mut parts, &state).await?;
        let JsonBytes(event) =
            JsonBytes::from_request(Request::from_parts(parts, content), &state).await?;
        let idempotency = idempotency_key.with_body(&event)?;
        callback_token
            .accept_event(&state.hub, &event, idempotency)
            .await?;
        1
    };
    let mut response = reply::bare_json(
        StatusCode::OK,
        &json!({"status": "ok", "events": event_count}),
    )?;
    if let Some(budget) = budget {
        budget.write_headers(response.headers_mut());
    }
    Ok(response)
}

fn is_ndjson(headers: &HeaderMap) -> bool {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    matches!(
        essence.as_str(),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl"
    )
}

/// Every line as it comes; at a bad one it ends, and those before it stand.
async fn read_ndjson(
    state: &AppState,
    callback_token: &CallbackToken,
    mut content: Body,
) -> Result<usize, ApiError> {
    let _slot = match state.callback_streams.acquire(callback_token.member_id()) {
        Ok(slot) => slot,
        Err(error) => {
            return Err(error.into());
        }
    };
    let mut reader = NdjsonReader {
        state,
        callback_token,
        buffer: BytesMut::new(),
        line_number: 0,
        event_count: 0,
    };
    loop {
        let next_frame =
            tokio::time::timeout(limits::CALLBACK_STREAM_IDLE_MAX, content.frame()).await;
        let pushed = match next_frame {
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => reader.push_bytes(&data).await,
                Err(_) => Ok(()),
            },
            // A line that was begun and not ended was not said.
            Ok(Some(Err(_))) => {
                return Err(reader
                    .unfinished_line_error(Error::validation("the body broke off"))
                    .into());
            }
            Ok(None) => return reader.finish().await.map_err(ApiError::from),
            Err(_) => {
                return Err(reader
                    .unfinished_line_error(Code::RequestTimeout.into())
                    .into());
            }
        };
        if let Err(error) = pushed {
            return Err(error.into());
        }
    }
}

struct NdjsonReader<'a> {
    state: &'a AppState,
    callback_token: &'a CallbackToken,
    buffer: BytesMut,
    line_number: usize,
    event_count: usize,
}

impl NdjsonReader<'_> {
    async fn push_bytes(&mut self, data: &[u8]) -> Result<(), Error> {
        for piece in data.split_inclusive(|byte| *byte == b'\n') {
            if self.buffer.len() + piece.len() > limits::BODY_BYTES {
                return Err(self.unfinished_line_error(Code::TooLarge.into()));
            }
            self.buffer.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = self.buffer.split();
                self.accept_line(&line).await?;
            }
        }
        Ok(())
    }

    /// The last line may have no end.
    async fn finish(mut self) -> Result<usize, Error> {
        let line = self.buffer.split();
        self.accept_line(&line).await?;
        Ok(self.event_count)
    }

    async fn accept_line(&mut self, line: &[u8]) -> Result<(), Error> {
        self.line_number += 1;
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        // The request was one; the lines after the first wait for their turn instead of being refused.
        while self.event_count > 0
            && let Err(error) = self.spend_budget().await
        {
            tokio::time::sleep(Duration::from_secs(error.retry_after.unwrap_or(1))).await;
        }
        self.callback_token
            .accept_event(&self.state.hub, line, None)
            .await
            .map_err(|error| self.with_line_number(error))?;
        self.event_count += 1;
        Ok(())
    }

    async fn spend_budget(&self) -> Result<(), Error> {
        admission::spend_caller_budget(
            self.state,
            CallerId::Connection(self.callback_token.member_id()),
        )
        .await
        .map(drop)
    }

    /// Which line it was, since the ones before it are said.
    fn with_line_number(&self, error: Error) -> Error {
        Error {
            message: format!("line {}: {}", self.line_number, error.message),
            ..error
        }
    }

    fn unfinished_line_error(&mut self, error: Error) -> Error {
        self.line_number += 1;
        self.with_line_number(error)
    }
}

/// A callback of this member's own, for what answers nothing; the one before stops working at once
#[utoipa::path(post, path = "/channels/{id}/members/{name}/callback", tag = "channel",
    params(("id" = String, Path), ("name" = String, Path)), security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 201, body = SuccessReply<PersistentCallback>), (status = 401, body = FailureReply), (status = 403, body = FailureReply),
        (status = 404, body = FailureReply), (status = 409, body = FailureReply, description = "The owner speaks with its key")))]
async fn create_persistent_callback(
    State(state): State<AppState>,
    RequireKey(principal): RequireKey,
    PathParamPair(id, name): PathParamPair,
) -> ApiResult {
    reply::wrapped_json(
        &state,
        StatusCode::CREATED,
        callback::create_persistent_callback(&principal, &state.hub, &id, &name).await?,
    )
}
