//! The extractor of `Idempotency-Key`, and the fingerprint of the body it belongs to (R-27).

use super::{api_error::ApiError, app_state::AppState};
use axum::extract::FromRequestParts;
use bytes::Bytes;
use chorus_hub::identity::IdempotencyKey;
use chorus_wire::contract::TextGrammar;
use chorus_wire::{Error, Result, json, limits};
use http::{HeaderMap, HeaderName, request::Parts};
use sha2::{Digest, Sha256};

/// The `Idempotency-Key` header, if the request has one.
pub struct IdempotencyHeader(Option<String>);

impl IdempotencyHeader {
    /// Adds the fingerprint of the body. Bodies are equal as JSON values, not as texts (failure 17).
    pub fn with_body(self, body: &Bytes) -> Result<Option<IdempotencyKey>> {
        let Some(key) = self.0 else { return Ok(None) };
        let canonical = json::to_canonical_json(&json::parse_value(json::decode_utf8(body)?)?);
        Ok(Some(IdempotencyKey {
            key,
            fingerprint: Sha256::digest(canonical.as_bytes()).into(),
        }))
    }
}

impl FromRequestParts<AppState> for IdempotencyHeader {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        _: &AppState,
    ) -> std::result::Result<Self, ApiError> {
        Ok(Self(parse_key_header(&parts.headers)?))
    }
}

/// A key that a client chooses for a request that it may repeat.
pub const IDEMPOTENCY_KEY: TextGrammar = TextGrammar {
    accepts: |text| {
        (1..=limits::IDEMPOTENCY_KEY_CHARS).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_graphic())
    },
    requirement: "1 to 256 visible characters",
    pattern: "^[!-~]+$",
    refused_pattern: None,
    max_chars: limits::IDEMPOTENCY_KEY_CHARS,
    format: None,
    example: "7c9e6679-7425-40de-944b-e07fc1f90ae7",
};

/// The fingerprint of a request: its body as a JSON value, or as octets if it is none, and its query.
pub fn fingerprint_request(query: Option<&str>, body: &Bytes) -> [u8; 32] {
    let value = json::decode_utf8(body).and_then(json::parse_value);
    let canonical = value.map(|value| json::to_canonical_json(&value));
    let body = canonical.as_ref().map_or(&body[..], |text| text.as_bytes());
    Sha256::new()
        .chain_update(query.unwrap_or_default())
        .chain_update(b"\n")
        .chain_update(body)
        .finalize()
        .into()
}

/// The key, given once.
pub fn parse_key_header(headers: &HeaderMap) -> Result<Option<String>> {
    let mut found = headers
        .get_all(HeaderName::from_static("idempotency-key"))
        .iter();
    let Some(value) = found.next() else {
        return Ok(None);
    };
    let key = value
        .to_str()
        .ok()
        .filter(|text| (IDEMPOTENCY_KEY.accepts)(text));
    if key.is_none() || found.next().is_some() {
        let message = format!(
            "Idempotency-Key must be {}, given once",
            IDEMPOTENCY_KEY.requirement
        );
        return Err(Error::invalid_field("Idempotency-Key", message));
    }
    Ok(key.map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(values: &[&[u8]]) -> HeaderMap {
        let name = HeaderName::from_static("idempotency-key");
        values
            .iter()
            .map(|value| (name.clone(), HeaderValue::from_bytes(value).unwrap()))
            .collect()
    }

    /// R-27
    #[test]
    fn an_idempotency_key_is_short_visible_and_single() {
        assert_eq!(parse_key_header(&HeaderMap::new()).unwrap(), None);
        assert_eq!(
            parse_key_header(&headers(&[b"a-1"])).unwrap().as_deref(),
            Some("a-1")
        );
        let long = [b'k'; 257];
        assert!(
            parse_key_header(&headers(&[&long[..256]]))
                .unwrap()
                .is_some()
        );
        for bad in [&b""[..], b"a b", b"\xc3\xa4", &long] {
            assert!(parse_key_header(&headers(&[bad])).is_err(), "{bad:?}");
        }
        assert!(parse_key_header(&headers(&[b"a", b"b"])).is_err());
    }

    /// Failure 17
    #[test]
    fn bodies_that_are_equal_as_json_have_one_fingerprint() {
        let fingerprint = |body: &'static str| {
            IdempotencyHeader(Some("k".into()))
                .with_body(&Bytes::from(body))
                .unwrap()
                .unwrap()
                .fingerprint
        };
        assert_eq!(
            fingerprint(r#"{"a":1,"b":[2]}"#),
            fingerprint(r#"{ "b": [2.0], "a": 1 }"#)
        );
        assert_ne!(fingerprint(r#"{"a":1}"#), fingerprint(r#"{"a":2}"#));
    }
}
