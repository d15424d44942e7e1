//! The whole body of a request, within its bounds of size and time.

use crate::{app_state::AppState, reply::ApiError};
use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use chorus_wire::{Code, Error, limits};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// A JSON body as bytes, not parsed yet.
pub struct JsonBytes(pub Bytes);

impl FromRequest<AppState> for JsonBytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &AppState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        if declared_length(&parts.headers).is_some_and(|length| length > limits::BODY_BYTES as u64)
        {
            drain_body(body);
            return Err(Code::TooLarge.into());
        }
        if !is_json(&parts.headers) {
            return Err(Error::validation("Content-Type must be application/json").into());
        }
        // At the deadline the rest is not waited for: the connection is closed soon after the answer.
        match tokio::time::timeout(limits::REQUEST_DEADLINE, read_body(body)).await {
            Ok(body) => Ok(Self(body?)),
            Err(_) => Err(Code::RequestTimeout.into()),
        }
    }
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// no `Content-Type` is JSON; another one is a mistake that is better said than guessed at.
fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE) else {
        return true;
    };
    let Ok(text) = value.to_str() else {
        return false;
    };
    let essence = text
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    essence.is_empty()
        || essence == "application/json"
        || (essence.contains('/') && essence.ends_with("+json"))
}

async fn read_body(mut body: Body) -> Result<Bytes, ApiError> {
    let mut first_chunk = Bytes::new();
    let mut later_chunks = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Error::validation("the body broke off"))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if first_chunk.len() + later_chunks.len() + data.len() > limits::BODY_BYTES {
            drain_body(body);
            return Err(Code::TooLarge.into());
        }
        if first_chunk.is_empty() {
            first_chunk = data;
        } else {
            later_chunks.extend_from_slice(&data);
        }
    }
    // Nearly every body comes in one piece, and then it is not copied.
    if later_chunks.is_empty() {
        return Ok(first_chunk);
    }
    Ok(Bytes::from([&first_chunk[..], &later_chunks[..]].concat()))
}

/// What is read and thrown away of a request that was answered before its end: a client that writes before it reads, such as a
/// proxy, would otherwise find its connection reset in place of the answer.
const MAX_DRAINED_BYTES: usize = 32 * limits::BODY_BYTES;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The body of every request: whoever drops it has seen enough, and the rest is drained.
pub struct DrainingBody(Option<hyper::body::Incoming>);

impl DrainingBody {
    pub fn wrap_incoming(body: hyper::body::Incoming) -> Body {
        if body.is_end_stream() {
            Body::empty()
        } else {
            Body::new(Self(Some(body)))
        }
    }
}

impl HttpBody for DrainingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(body).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for DrainingBody {
    fn drop(&mut self) {
        let Some(mut body) = self.0.take().filter(|body| !body.is_end_stream()) else {
            return;
        };
        // Outside of the runtime there is no connection either.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(tokio::time::timeout(DRAIN_TIMEOUT, async move {
            let mut bytes_left = MAX_DRAINED_BYTES;
            while let Some(Ok(frame)) = body.frame().await {
                bytes_left = bytes_left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
                if bytes_left == 0 {
                    break;
                }
            }
        }));
    }
}

/// Says where the answer is given that nobody reads further.
pub fn drain_body(body: Body) {
    drop(body);
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn typed(value: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
        is_json(&headers)
    }

    ///
    #[test]
    fn json_is_accepted_by_every_name_it_goes_by() {
        assert!(is_json(&HeaderMap::new()));
        for good in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.chorus.envelope+json",
        ] {
            assert!(typed(good), "{good}");
        }
        for bad in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "json",
            "+json",
        ] {
            assert!(!typed(bad), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_body_in_pieces_is_put_together_and_one_past_the_bound_is_refused() {
        let pieces = |count: usize| {
            let piece = Bytes::from(vec![b'x'; limits::BODY_BYTES / 4]);
            let pieces = (0..count).map(move |_| Ok::<_, std::io::Error>(piece.clone()));
            Body::from_stream(futures_util::stream::iter(pieces))
        };
        assert_eq!(
            read_body(pieces(4)).await.unwrap().len(),
            limits::BODY_BYTES
        );
        assert!(read_body(pieces(5)).await.is_err());
    }
}
