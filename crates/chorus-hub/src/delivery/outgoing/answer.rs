//! The receiver's answer to a POST, or why there is none, in words that the sender may read.

use super::name_resolver::NameUnresolved;
use bytes::{Bytes, BytesMut};
use chorus_wire::{ErrorCode, json, limits, message::ReceiverReply};
use reqwest::{Response, header::CONTENT_TYPE};
use serde_json::Value;
use std::error::Error;

/// A complete answer, of any status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookAnswer {
    pub status: u16,
    pub body: Bytes,
}

impl WebhookAnswer {
    /// The body as JSON. The content decides, not the `Content-Type` header.
    pub fn parse_json(&self) -> Option<Value> {
        json::parse_value(json::decode_utf8(&self.body).ok()?).ok()
    }

    /// The receiver's protocol reply: with a 2xx, or with a 4xx, by which it refuses. A
    /// redirect is neither.
    pub fn protocol_reply(&self) -> Option<Value> {
        let is_reply_status = matches!(self.status, 200..=299 | 400..=499);
        self.parse_json()
            .filter(|value| is_reply_status && ReceiverReply::is_protocol_reply(value))
    }
}

/// Why there is no answer. No text contains a URL, an address or a header, because senders see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    #[error("the receiver's endpoint is on an address that this hub does not reach")]
    Blocked,
    #[error("the receiver's endpoint could not be reached: {0}")]
    Unreachable(&'static str),
    #[error("the receiver's endpoint did not answer in time")]
    TimedOut,
    #[error("the receiver's endpoint answered with more than this hub reads")]
    TooLarge,
    #[error("the receiver's endpoint did not answer completely, or not in HTTP")]
    Broken,
    #[error("too many deliveries are waiting for their turn")]
    Busy,
}

impl PostError {
    /// The error code of a failed delivery.
    pub fn code(self) -> ErrorCode {
        match self {
            PostError::TimedOut => ErrorCode::Timeout,
            PostError::Blocked
            | PostError::Unreachable(_)
            | PostError::TooLarge
            | PostError::Broken
            | PostError::Busy => ErrorCode::AgentUnreachable,
        }
    }

    /// A word for spans and meters.
    pub fn kind(self) -> &'static str {
        match self {
            PostError::Blocked => "blocked",
            PostError::Unreachable(_) => "unreachable",
            PostError::TimedOut => "timed_out",
            PostError::TooLarge => "too_large",
            PostError::Broken => "broken",
            PostError::Busy => "busy",
        }
    }

    /// Converts an error of the HTTP client, whose own text contains the URL.
    pub(super) fn from_client_error(error: &reqwest::Error) -> Self {
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        while let Some(found) = cause {
            if found.is::<NameUnresolved>() {
                return PostError::Unreachable("its host name does not resolve");
            }
            cause = found.source();
        }
        if error.is_timeout() && error.is_connect() {
            PostError::Unreachable("the connection took too long")
        } else if error.is_timeout() {
            PostError::TimedOut
        } else if error.is_builder() {
            PostError::Unreachable("no request can be made from what was given")
        } else if error.is_connect() {
            PostError::Unreachable("the connection was refused or could not be secured")
        } else {
            PostError::Broken
        }
    }
}

/// Reads the body of an answer, and stops as soon as it exceeds `max_bytes`.
pub(super) async fn read_answer(
    mut response: Response,
    max_bytes: usize,
) -> Result<WebhookAnswer, PostError> {
    let status = response.status().as_u16();
    // A larger `Content-Length` is refused without reading. A smaller one is not trusted: the bytes
    // are counted.
    if response
        .content_length()
        .is_some_and(|length| length > max_bytes as u64)
    {
        return Err(PostError::TooLarge);
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|e| PostError::from_client_error(&e))?
    {
        if body.len() + chunk.len() > max_bytes {
            return Err(PostError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(WebhookAnswer {
        status,
        body: body.freeze(),
    })
}

/// Refuses answers whose headers exceed `HEADER_BYTES`. The HTTP parser has its own, higher limit
/// on what it buffers.
pub(super) fn check_headers(response: &Response) -> Result<(), PostError> {
    let bytes: usize = response
        .headers()
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    if bytes > limits::HEADER_BYTES {
        Err(PostError::TooLarge)
    } else {
        Ok(())
    }
}

pub(super) fn is_event_stream(response: &Response) -> bool {
    let Some(Ok(content_type)) = response
        .headers()
        .get(CONTENT_TYPE)
        .map(|value| value.to_str())
    else {
        return false;
    };
    content_type
        .split(';')
        .next()
        .is_some_and(|media_type| media_type.trim().eq_ignore_ascii_case("text/event-stream"))
}
