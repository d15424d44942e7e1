//! Callbacks: what members post back, one event or a stream of them, and callbacks that stand.

use crate::query::Pair;
use crate::reply::{self, Answer, Refused};
use crate::{auth::Known, body, body::Whole, doors::Doors, front, limit::Caller, once::Once};
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use bytes::BytesMut;
use chorus_hub::channel::callback::{self, Door};
use chorus_wire::channel::standing::Standing;
use chorus_wire::reply::{Failure, Success};
use chorus_wire::{Code, Error, limits, secret::Secret};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::json;
use std::time::Duration;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub fn routes() -> OpenApiRouter<Doors> {
    OpenApiRouter::default()
        .routes(routes!(post))
        .routes(routes!(stand))
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
        (status = 404, body = Failure, description = "No such callback"),
        (status = 409, body = Failure, description = "The Idempotency-Key was used with another event"),
        (status = 410, body = Failure, description = "It expired, or its member or channel is gone"),
        (status = 429, body = Failure, description = "Too many events, or too many streams of this member")))]
async fn post(State(doors): State<Doors>, request: Request) -> Answer {
    let (mut parts, content) = request.into_parts();
    let place = Path::<(String, String)>::from_request_parts(&mut parts, &doors).await;
    let (id, token) = place.map(|Path(place)| place).unwrap_or_default();
    // Before anything of the body is looked at: whoever guesses learns nothing, whatever it sends.
    let door = match Door::find(&doors.hub, &id, &Secret::new(token)).await {
        Ok(door) => door,
        Err(refused) => {
            body::drain(content);
            if refused.code == Code::NotFound {
                front::count_stranger(&doors, &parts).await?;
            }
            return Err(refused.into());
        }
    };
    let budget = front::count(&doors, Caller::Connection(door.number())).await?;
    let heard = if is_lines(&parts.headers) {
        lines(&doors, &door, content).await?
    } else {
        let once = Once::from_request_parts(&mut parts, &doors).await?;
        let Whole(event) = Whole::from_request(Request::from_parts(parts, content), &doors).await?;
        let once = once.with(&event)?;
        door.hear(&doors.hub, &event, once).await?;
        1
    };
    let mut answer = reply::bare(StatusCode::OK, &json!({"status": "ok", "events": heard}))?;
    if let Some(budget) = budget {
        budget.write(answer.headers_mut());
    }
    Ok(answer)
}

fn is_lines(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = kind
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
async fn lines(doors: &Doors, door: &Door, mut content: Body) -> Result<usize, Refused> {
    let _place = match doors.callbacks.take(door.number()) {
        Ok(place) => place,
        Err(full) => {
            body::drain(content);
            return Err(full.into());
        }
    };
    let mut lines = Lines {
        doors,
        door,
        held: BytesMut::new(),
        number: 0,
        heard: 0,
    };
    loop {
        let more = tokio::time::timeout(limits::CALLBACK_PAUSE, content.frame()).await;
        let done = match more {
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => lines.take(&data).await,
                Err(_) => Ok(()),
            },
            // A line that was begun and not ended was not said.
            Ok(Some(Err(_))) => {
                return Err(lines
                    .unfinished(Error::validation("the body broke off"))
                    .into());
            }
            Ok(None) => return lines.end().await.map_err(Refused::from),
            Err(_) => return Err(lines.unfinished(Code::RequestTimeout.into()).into()),
        };
        if let Err(refused) = done {
            body::drain(content);
            return Err(refused.into());
        }
    }
}

struct Lines<'a> {
    doors: &'a Doors,
    door: &'a Door,
    held: BytesMut,
    number: usize,
    heard: usize,
}

impl Lines<'_> {
    async fn take(&mut self, data: &[u8]) -> Result<(), Error> {
        for piece in data.split_inclusive(|byte| *byte == b'\n') {
            if self.held.len() + piece.len() > limits::BODY_BYTES {
                return Err(self.unfinished(Code::TooLarge.into()));
            }
            self.held.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = self.held.split();
                self.hear(&line).await?;
            }
        }
        Ok(())
    }

    /// The last line may have no end.
    async fn end(mut self) -> Result<usize, Error> {
        let line = self.held.split();
        self.hear(&line).await?;
        Ok(self.heard)
    }

    async fn hear(&mut self, line: &[u8]) -> Result<(), Error> {
        self.number += 1;
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        // The request was one; the lines after the first wait for their turn instead of being refused.
        while self.heard > 0
            && let Err(refused) = self.count().await
        {
            tokio::time::sleep(Duration::from_secs(refused.retry_after.unwrap_or(1))).await;
        }
        self.door
            .hear(&self.doors.hub, line, None)
            .await
            .map_err(|refused| self.wrong(refused))?;
        self.heard += 1;
        Ok(())
    }

    async fn count(&self) -> Result<(), Error> {
        front::count(self.doors, Caller::Connection(self.door.number()))
            .await
            .map(drop)
    }

    /// Which line it was, since the ones before it are said.
    fn wrong(&self, refused: Error) -> Error {
        Error {
            message: format!("line {}: {}", self.number, refused.message),
            ..refused
        }
    }

    fn unfinished(&mut self, refused: Error) -> Error {
        self.number += 1;
        self.wrong(refused)
    }
}

/// A callback of this member's own, for what answers nothing; the one before stops working at once
#[utoipa::path(post, path = "/channels/{id}/members/{name}/callback", tag = "channel",
    params(("id" = String, Path), ("name" = String, Path)), security(("agent_key" = []), ("operator_key" = [])),
    responses((status = 201, body = Success<Standing>), (status = 401, body = Failure), (status = 403, body = Failure),
        (status = 404, body = Failure), (status = 409, body = Failure, description = "The owner speaks with its key")))]
async fn stand(State(doors): State<Doors>, Known(who): Known, Pair(id, name): Pair) -> Answer {
    reply::wrapped(
        &doors,
        StatusCode::CREATED,
        callback::standing(&who, &doors.hub, &id, &name).await?,
    )
}
