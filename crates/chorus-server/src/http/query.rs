//! The extractor of query parameters; an error names the parameter.

use super::{api_error::ApiError, app_state::AppState};
use axum::extract::FromRequestParts;
use chorus_wire::{Error, ErrorCode, Result, limits};
use http::{Uri, request::Parts};

/// Checks that every `%` starts an escape and that the decoded text is UTF-8. Routes match the raw path, so the front calls
/// this before any handler runs.
pub fn check_encoding(uri: &Uri) -> Result<()> {
    let encoding_error =
        |part: &str| Error::validation(format!("the {part} is not valid percent-encoded UTF-8"));
    percent_decode(uri.path()).ok_or_else(|| encoding_error("path"))?;
    percent_decode(uri.query().unwrap_or_default()).ok_or_else(|| encoding_error("query"))?;
    Ok(())
}

/// Refuses a key in the query on every route: a URL ends up in logs and histories, so it is refused even beside a valid
/// header.
pub fn check_no_key(uri: &Uri) -> Result<()> {
    let Some(raw) = uri.query() else {
        return Ok(());
    };
    // Decoded, because `%74oken` is the same name.
    if QueryParams::parse(raw)?.has("token") {
        return Err(Error {
            field: Some("token".into()),
            ..ErrorCode::Deprecated.into()
        });
    }
    Ok(())
}

/// Decodes percent escapes; `None` when one is malformed. The `percent-encoding` crate would pass a malformed escape through
/// as text, which this hub refuses.
fn percent_decode(text: &str) -> Option<std::borrow::Cow<'_, str>> {
    if !text.contains('%') {
        return Some(text.into());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
            out.push(digit(bytes.next()?)? << 4 | digit(bytes.next()?)?);
        } else {
            out.push(byte);
        }
    }
    String::from_utf8(out).ok().map(Into::into)
}

/// Encodes everything but the unreserved characters of RFC 3986.
fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// The query parameters of a request. Unknown ones are ignored; a known one given twice is refused as ambiguous.
pub struct QueryParams(Vec<(String, String)>);

impl QueryParams {
    pub fn parse(raw: &str) -> Result<Self> {
        let mut pairs = Vec::new();
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode_text =
                |text: &str| percent_decode(&text.replace('+', " ")).map(|text| text.into_owned());
            let encoding_error =
                || Error::validation("the query is not valid percent-encoded UTF-8");
            pairs.push((
                decode_text(name).ok_or_else(encoding_error)?,
                decode_text(value).ok_or_else(encoding_error)?,
            ));
        }
        Ok(Self(pairs))
    }

    /// Whether the parameter is given, with or without a value.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(found, _)| found == name)
    }

    /// The query with this parameter replaced.
    pub fn encode_with(&self, name: &str, value: &str) -> String {
        let others = self.0.iter().filter(|(found, _)| found != name);
        let pairs = others.map(|(found, value)| (found.as_str(), value.as_str()));
        let pairs = pairs.chain([(name, value)]);
        pairs
            .map(|(name, value)| format!("{}={}", percent_encode(name), percent_encode(value)))
            .collect::<Vec<_>>()
            .join("&")
    }

    /// The value of a parameter that may be given once.
    pub fn get_single(&self, name: &str) -> Result<Option<&str>> {
        let mut found = self
            .0
            .iter()
            .filter(|(found, _)| found == name)
            .map(|(_, value)| value.as_str());
        match (found.next(), found.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(Error::invalid_field(name, format!("{name} is given twice"))),
        }
    }

    /// The `limit` parameter: at least 1, clamped to `max_limit`, which is also the default.
    pub fn page_limit(&self, max_limit: usize) -> Result<usize> {
        let Some(text) = self.get_single("limit")? else {
            return Ok(max_limit);
        };
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match (is_number, text.parse::<usize>()) {
            (true, Ok(0)) | (false, _) => Err(Error::invalid_field(
                "limit",
                "limit must be a whole number of at least 1",
            )),
            (true, Ok(limit)) => Ok(limit.min(max_limit)),
            (true, Err(_)) => Ok(max_limit),
        }
    }

    /// The `text` parameter: what is searched for.
    pub fn search_text(&self) -> Result<Option<&str>> {
        let text = self.get_single("text")?;
        let characters = text.map_or(1, |text| text.chars().count());
        if (1..=limits::SEARCH_TEXT_CHARS).contains(&characters) {
            return Ok(text);
        }
        let sentence = format!(
            "text must be 1 to {} characters long",
            limits::SEARCH_TEXT_CHARS
        );
        Err(Error::invalid_field("text", sentence))
    }

    /// A finite number of at least `least`.
    pub fn parse_number(&self, name: &str, least: f64) -> Result<Option<f64>> {
        let Some(text) = self.get_single(name)? else {
            return Ok(None);
        };
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= least => Ok(Some(number)),
            Ok(_) | Err(_) => Err(Error::invalid_field(
                name,
                format!("{name} must be a number of at least {least}"),
            )),
        }
    }
}

impl FromRequestParts<AppState> for QueryParams {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        _: &AppState,
    ) -> std::result::Result<Self, ApiError> {
        Ok(Self::parse(parts.uri.query().unwrap_or_default())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(raw: &str) -> QueryParams {
        QueryParams::parse(raw).unwrap()
    }

    #[test]
    fn a_malformed_escape_is_refused_in_path_and_query() {
        for bad in [
            "/agents/%zz",
            "/agents/%e4",
            "/agents/%",
            "/agents/%C3%28",
            "/a?since=%",
            "/a?x=%ff",
        ] {
            assert!(check_encoding(&bad.parse().unwrap()).is_err(), "{bad}");
        }
        for good in ["/agents/bob%40chorus", "/a?since=%E4%BD%A0", "/"] {
            assert!(check_encoding(&good.parse().unwrap()).is_ok(), "{good}");
        }
    }

    #[test]
    fn a_limit_is_clamped_above_and_refused_below() {
        assert_eq!(query("").page_limit(10).unwrap(), 10);
        assert_eq!(query("limit=3").page_limit(10).unwrap(), 3);
        assert_eq!(
            query("limit=99999999999999999999999")
                .page_limit(10)
                .unwrap(),
            10
        );
        for bad in [
            "limit=0",
            "limit=abc",
            "limit=-1",
            "limit=",
            "limit=1.5",
            "limit=+1",
            "limit=1&limit=2",
        ] {
            let error = query(bad).page_limit(10).unwrap_err();
            assert!(error.message.contains("limit"), "{bad}: {error}");
        }
    }
}
