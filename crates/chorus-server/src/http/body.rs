//! The extractor of a JSON body: content type, size limit and deadline.

use super::{api_error::ApiError, app_state::AppState};
use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, Request};
use bytes::{Bytes, BytesMut};
use chorus_wire::{Error, ErrorCode, limits};
use http::{HeaderMap, header};
use http_body_util::BodyExt;

/// A JSON body as bytes, not parsed yet.
pub struct JsonBytes(pub Bytes);

impl FromRequest<AppState> for JsonBytes {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &AppState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        check_declared_length(&parts.headers)?;
        if !body.is_end_stream() {
            check_json_type(&parts.headers)?;
        }
        read_request_body(&parts.headers, body).await.map(Self)
    }
}

/// The whole body, within the size limit and the deadline.
pub async fn read_request_body(headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
    check_declared_length(headers)?;
    // At the deadline the rest is not awaited; the connection is closed soon after the response.
    match tokio::time::timeout(limits::REQUEST_DEADLINE, read_body(body)).await {
        Ok(body) => body,
        Err(_) => Err(ErrorCode::RequestTimeout.into()),
    }
}

fn check_declared_length(headers: &HeaderMap) -> Result<(), Error> {
    match declared_length(headers) {
        Some(length) if length > limits::BODY_BYTES as u64 => Err(ErrorCode::TooLarge.into()),
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

async fn read_body(mut body: Body) -> Result<Bytes, ApiError> {
    let mut first_chunk = Bytes::new();
    let mut later_chunks = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Error::validation("the body broke off"))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if first_chunk.len() + later_chunks.len() + data.len() > limits::BODY_BYTES {
            return Err(ErrorCode::TooLarge.into());
        }
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

    #[tokio::test]
    async fn a_chunked_body_is_joined_and_one_past_the_limit_is_refused() {
        let body_of = |count: usize| {
            let chunk = Bytes::from(vec![b'x'; limits::BODY_BYTES / 4]);
            let chunks = (0..count).map(move |_| Ok::<_, std::io::Error>(chunk.clone()));
            Body::from_stream(futures_util::stream::iter(chunks))
        };
        assert_eq!(
            read_body(body_of(4)).await.unwrap().len(),
            limits::BODY_BYTES
        );
        assert!(read_body(body_of(5)).await.is_err());
    }
}
