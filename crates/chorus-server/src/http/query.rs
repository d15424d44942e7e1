//! Query parameters and path segments, decoded once and refused by name.

use super::{api_error::ApiError, app_state::AppState};
use axum::extract::{FromRequestParts, Path};
use chorus_hub::envelope::HistoryStart;
use chorus_wire::{Error, Result, cursor::Cursor, time::UnixMicros};
use http::{Uri, request::Parts};

/// Whether every `%` is followed by two hex digits and what they spell is UTF-8. Routes are matched on the raw path, so
/// this is asked before any handler runs.
pub fn check_encoding(uri: &Uri) -> Result<()> {
    let wrong =
        |place: &str| Error::validation(format!("the {place} is not valid percent-encoded UTF-8"));
    percent_decode(uri.path()).ok_or_else(|| wrong("path"))?;
    percent_decode(uri.query().unwrap_or_default()).ok_or_else(|| wrong("query"))?;
    Ok(())
}

/// The text with its escapes resolved, or nothing when it is not well encoded. Borrowing is not worth it: escapes are rare and
/// texts without them return at once.
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

/// The parameters of a request. Unknown ones are ignored; a known one given twice is an error, since one of the two is not meant.
pub struct QueryParams(Vec<(String, String)>);

impl QueryParams {
    pub fn parse(raw: &str) -> Result<Self> {
        let mut pairs = Vec::new();
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let decode_text =
                |text: &str| percent_decode(&text.replace('+', " ")).map(|text| text.into_owned());
            let wrong = || Error::validation("the query is not valid percent-encoded UTF-8");
            pairs.push((
                decode_text(name).ok_or_else(wrong)?,
                decode_text(value).ok_or_else(wrong)?,
            ));
        }
        Ok(Self(pairs))
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(found, _)| found == name)
    }

    pub fn get_single(&self, name: &str) -> Result<Option<&str>> {
        let mut found = self
            .0
            .iter()
            .filter(|(found, _)| found == name)
            .map(|(_, value)| value.as_str());
        match (found.next(), found.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(Error::validation(format!("{name} is given twice"))),
        }
    }

    /// At least 1; more than the page holds means the whole page.
    pub fn page_limit(&self, max_limit: usize) -> Result<usize> {
        let Some(text) = self.get_single("limit")? else {
            return Ok(max_limit);
        };
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match (digits, text.parse::<usize>()) {
            (true, Ok(0)) | (false, _) => Err(Error::validation(
                "limit must be a whole number of at least 1",
            )),
            (true, Ok(limit)) => Ok(limit.min(max_limit)),
            (true, Err(_)) => Ok(max_limit),
        }
    }

    /// A number of at least `least` that may have decimals.
    pub fn parse_number(&self, name: &str, least: f64) -> Result<Option<f64>> {
        let Some(text) = self.get_single(name)? else {
            return Ok(None);
        };
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= least => Ok(Some(number)),
            Ok(_) | Err(_) => Err(Error::validation(format!(
                "{name} must be a number of at least {least}"
            ))),
        }
    }

    /// A place in the durable log.
    pub fn since_cursor(&self) -> Result<Option<Cursor>> {
        self.parse_cursor("since")
    }

    /// The same under another name.
    pub fn parse_cursor(&self, name: &str) -> Result<Option<Cursor>> {
        self.get_single(name)?
            .map(|text| parse_log_cursor(name, text))
            .transpose()
    }

    /// all digits are an id, RFC 3339 is an instant.
    pub fn parse_since(&self) -> Result<Option<HistoryStart>> {
        let Some(text) = self.get_single("since")? else {
            return Ok(None);
        };
        if let Ok(Cursor { epoch: 0, seq }) = text.parse() {
            return Ok(Some(HistoryStart::AfterId(seq)));
        }
        // The plus of an offset is often sent unescaped, and then reads as a blank.
        let instant = UnixMicros::parse(&text.replace(' ', "+"));
        let wrong =
            || Error::validation("since must be an id (digits only) or an RFC 3339 instant");
        instant
            .map(|at| Some(HistoryStart::FromTime(at)))
            .ok_or_else(wrong)
    }
}

/// A cursor of the durable log; `what` is what the error calls it.
fn parse_log_cursor(what: &str, text: &str) -> Result<Cursor> {
    match text.parse() {
        Ok(cursor @ Cursor { epoch: 0, .. }) => Ok(cursor),
        Ok(_) | Err(_) => Err(Error::validation(format!(
            "{what} is not an id that this hub gave out"
        ))),
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

/// Where a stream goes on. The header wins: EventSource repeats its URL, and with it an old `since`.
pub struct ResumeCursor(pub Option<Cursor>);

impl FromRequestParts<AppState> for ResumeCursor {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &AppState,
    ) -> std::result::Result<Self, ApiError> {
        let header = parts
            .headers
            .get("last-event-id")
            .filter(|value| !value.is_empty());
        match header {
            // Bytes that are no text are no cursor either, and fail as one.
            Some(value) => Ok(Self(Some(parse_log_cursor(
                "Last-Event-ID",
                value.to_str().unwrap_or_default(),
            )?))),
            None => Ok(Self(
                QueryParams::from_request_parts(parts, state)
                    .await?
                    .since_cursor()?,
            )),
        }
    }
}

/// The one parameter of a path.
pub struct PathParam(pub String);

impl FromRequestParts<AppState> for PathParam {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &AppState,
    ) -> std::result::Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        path.map(|Path(segment)| Self(segment))
            .map_err(|e| Error::validation(e.body_text()).into())
    }
}

/// The two parameters of a path.
pub struct PathParamPair(pub String, pub String);

impl FromRequestParts<AppState> for PathParamPair {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &AppState,
    ) -> std::result::Result<Self, ApiError> {
        let path = Path::<(String, String)>::from_request_parts(parts, state).await;
        path.map(|Path((first, second))| Self(first, second))
            .map_err(|e| Error::validation(e.body_text()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(raw: &str) -> QueryParams {
        QueryParams::parse(raw).unwrap()
    }

    #[test]
    fn a_broken_escape_is_refused_wherever_it_stands() {
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

    ///
    #[test]
    fn since_is_an_id_or_an_instant_and_nothing_else() {
        assert_eq!(
            query("since=5").parse_since().unwrap(),
            Some(HistoryStart::AfterId(5))
        );
        let instant = Some(HistoryStart::FromTime(UnixMicros(0)));
        for same in [
            "1970-01-01T00:00:00Z",
            "1970-01-01T02:00:00+02:00",
            "1970-01-01T02:00:00%2B02:00",
        ] {
            assert_eq!(
                query(&format!("since={same}")).parse_since().unwrap(),
                instant,
                "{same}"
            );
        }
        for bad in [
            "since=abc",
            "since=",
            "since=-1",
            "since=1-2",
            "since=1e3",
            "since=2026-01-01",
        ] {
            assert!(
                query(bad)
                    .parse_since()
                    .unwrap_err()
                    .message
                    .contains("since"),
                "{bad}"
            );
        }
    }

    ///
    #[test]
    fn a_stream_cursor_is_one_of_the_log() {
        assert_eq!(
            query("since=7").since_cursor().unwrap(),
            Some(Cursor::from_log_seq(7))
        );
        assert!(query("since=2026-01-01T00:00:00Z").since_cursor().is_err());
        assert!(
            parse_log_cursor("Last-Event-ID", "3-7")
                .unwrap_err()
                .message
                .contains("Last-Event-ID")
        );
    }
}
