//! The extractor of a JSON body: content type, size limit and deadline.

use super::admission;
use super::held_bytes::{ByteReservation, HeldBytes};
use super::{api_error::ApiError, app_state::AppState};
use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use chorus_wire::{Error, ErrorCode, limits};
use http::{HeaderMap, header, request::Parts};
use http_body_util::BodyExt;
use std::net::IpAddr;

/// Bodies up to this size are not counted among those that arrive: most requests are smaller.
const COUNTED_FROM_BYTES: usize = 16 * 1024;

/// A JSON body as bytes, not parsed yet.
pub struct JsonBytes(pub Bytes);

impl FromRequest<AppState> for JsonBytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        check_declared_length(&parts.headers, limits::BODY_BYTES)?;
        if !body.is_end_stream() {
            check_json_type(&parts.headers)?;
        }
        let body = read_request_body(state, &parts, body, limits::BODY_BYTES).await?;
        Ok(Self(body))
    }
}

/// The bytes of bodies whose end has not arrived: clients that send almost all of a body and then stop hold no more.
pub struct ArrivingBodies(HeldBytes);

impl ArrivingBodies {
    /// A body that goes on beyond `max_bytes` of all is 503.
    pub fn with_memory(max_bytes: u64) -> Self {
        Self(HeldBytes::with_max(max_bytes))
    }

    fn expect_body(&self, client: IpAddr, max_bytes: usize) -> ArrivingBody<'_> {
        ArrivingBody {
            all: self,
            client,
            max_bytes,
            reservation: None,
        }
    }
}

/// One body of which a part has arrived.
struct ArrivingBody<'a> {
    all: &'a ArrivingBodies,
    client: IpAddr,
    max_bytes: usize,
    reservation: Option<ByteReservation>,
}

impl ArrivingBody<'_> {
    /// Counts a chunk after which `total` bytes have arrived.
    fn count_chunk(&mut self, chunk: usize, total: usize) -> Result<(), Error> {
        if total > self.max_bytes {
            return Err(ErrorCode::TooLarge.into());
        }
        if total <= COUNTED_FROM_BYTES {
            return Ok(());
        }
        let has_room = match &mut self.reservation {
            Some(reservation) => reservation.try_grow(chunk as u64),
            None => {
                self.reservation = self.all.0.reserve(self.client, total as u64);
                self.reservation.is_some()
            }
        };
        if has_room {
            return Ok(());
        }
        let message = "too many large requests are being sent";
        Err(Error::unavailable(message))
    }
}

/// The whole body, within the size limit, the memory for bodies that arrive, and the deadline.
pub async fn read_request_body(
    state: &AppState,
    parts: &Parts,
    body: Body,
    max_bytes: usize,
) -> Result<Bytes, ApiError> {
    check_declared_length(&parts.headers, max_bytes)?;
    let client = admission::client_address(&parts.extensions);
    let arriving = state.arriving_bodies.expect_body(client, max_bytes);
    // At the deadline the rest is not awaited; the connection is closed soon after the response.
    match tokio::time::timeout(limits::REQUEST_DEADLINE, read_body(body, arriving)).await {
        Ok(body) => body,
        Err(_) => Err(ErrorCode::RequestTimeout.into()),
    }
}

fn check_declared_length(headers: &HeaderMap, max_bytes: usize) -> Result<(), Error> {
    match declared_length(headers) {
        Some(length) if length > max_bytes as u64 => Err(ErrorCode::TooLarge.into()),
        Some(_) | None => Ok(()),
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

/// A body must be declared as JSON: a browser sends every other type, and none, to any host without asking it.
pub fn check_json_type(headers: &HeaderMap) -> Result<(), Error> {
    let essence = media_type_text(headers);
    // Nearly every request; compared without a copy in lower case.
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    if essence.contains('/') && essence.to_ascii_lowercase().ends_with("+json") {
        return Ok(());
    }
    Err(Error {
        field: Some("Content-Type".into()),
        ..ErrorCode::UnsupportedMediaType.into()
    })
}

/// The media type of the body without its parameters, in lower case; empty without one.
pub fn media_type(headers: &HeaderMap) -> String {
    media_type_text(headers).to_ascii_lowercase()
}

/// The media type of the body without its parameters, as it was sent.
fn media_type_text(headers: &HeaderMap) -> &str {
    let value = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim()
}

async fn read_body(mut body: Body, mut arriving: ArrivingBody<'_>) -> Result<Bytes, ApiError> {
    let mut first_chunk = Bytes::new();
    let mut later_chunks = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Error::validation("the body broke off"))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let total = first_chunk.len() + later_chunks.len() + data.len();
        arriving.count_chunk(data.len(), total)?;
        if first_chunk.is_empty() {
            first_chunk = data;
        } else {
            later_chunks.extend_from_slice(&data);
        }
    }
    // Nearly every body arrives in one chunk, which is returned without copying.
    if later_chunks.is_empty() {
        return Ok(first_chunk);
    }
    Ok(Bytes::from([&first_chunk[..], &later_chunks[..]].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn is_accepted(value: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
        check_json_type(&headers).is_ok()
    }

    //
    #[test]
    fn every_json_media_type_is_accepted_and_no_other() {
        assert!(check_json_type(&HeaderMap::new()).is_err());
        for good in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.chorus.envelope+json",
        ] {
            assert!(is_accepted(good), "{good}");
        }
        for bad in [
            "",
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "json",
            "+json",
        ] {
            assert!(!is_accepted(bad), "{bad}");
        }
    }

    const CHUNK: usize = limits::BODY_BYTES / 4;

    fn chunks(count: usize) -> impl futures_util::Stream<Item = Result<Bytes, std::io::Error>> {
        let chunk = Bytes::from(vec![b'x'; CHUNK]);
        futures_util::stream::iter((0..count).map(move |_| Ok(chunk.clone())))
    }

    fn client(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    #[tokio::test]
    async fn a_chunked_body_is_joined_and_one_past_the_limit_is_refused() {
        let all = ArrivingBodies::with_memory(u64::MAX);
        let read = async |count| {
            let arriving = all.expect_body(client(1), limits::BODY_BYTES);
            read_body(Body::from_stream(chunks(count)), arriving).await
        };
        assert_eq!(read(4).await.unwrap().len(), limits::BODY_BYTES);
        assert!(read(5).await.is_err());
        assert!(all.0.is_empty());
    }

    //
    #[tokio::test]
    async fn bodies_that_stop_before_their_end_have_a_bound_for_each_address() {
        // One address may hold a quarter: two bodies of three chunks.
        let all = ArrivingBodies::with_memory(4 * 6 * CHUNK as u64);
        let start = |address: u8| {
            use futures_util::StreamExt;
            let body = Body::from_stream(chunks(3).chain(futures_util::stream::pending()));
            read_body(body, all.expect_body(client(address), limits::BODY_BYTES))
        };
        let mut stalled: Vec<_> = (0..2).map(|_| Box::pin(start(1))).collect();
        for body in &mut stalled {
            assert!(futures_util::poll!(body).is_pending());
        }
        assert!(start(1).await.is_err(), "the third waits for nothing");
        assert!(futures_util::poll!(Box::pin(start(2))).is_pending());
        drop(stalled);
        assert!(futures_util::poll!(Box::pin(start(1))).is_pending());
        assert!(all.0.is_empty());
    }
}
