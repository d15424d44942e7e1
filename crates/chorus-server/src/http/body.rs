//! The extractor of a JSON body: content type, size limit and deadline.

use super::{api_error::ApiError, app_state::AppState};
use axum::body::Body;
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
        if declared_length(&parts.headers).is_some_and(|length| length > limits::BODY_BYTES as u64)
        {
            return Err(ErrorCode::TooLarge.into());
        }
        if !is_json(&parts.headers) {
            let message = "Content-Type must be application/json";
            return Err(Error::invalid_field("Content-Type", message).into());
        }
        // At the deadline the rest is not awaited; the connection is closed soon after the response.
        match tokio::time::timeout(limits::REQUEST_DEADLINE, read_body(body)).await {
            Ok(body) => Ok(Self(body?)),
            Err(_) => Err(ErrorCode::RequestTimeout.into()),
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

/// a missing `Content-Type` means JSON. Any other type is refused, because guessing would hide the client's mistake.
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
        is_json(&headers)
    }

    ///
    #[test]
    fn every_json_media_type_is_accepted() {
        assert!(is_json(&HeaderMap::new()));
        for good in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.chorus.envelope+json",
        ] {
            assert!(is_accepted(good), "{good}");
        }
        for bad in [
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
