//! Where a stream or a page continues: `Last-Event-ID`, `since` and other cursors in a query (R-15, R-38, invariant 5).

use super::{api_error::ApiError, app_state::AppState, query::QueryParams};
use axum::extract::FromRequestParts;
use chorus_wire::cursor::{Cursor, HistoryStart, ResumePoint};
use chorus_wire::{Error, Result, time::UnixMicros};
use http::{HeaderMap, request::Parts};

/// The position in `Last-Event-ID`; bytes that are not ASCII are no cursor.
pub fn parse_last_event_id(headers: &HeaderMap) -> ResumePoint {
    match headers.get("last-event-id") {
        Some(value) => value
            .to_str()
            .map_or(ResumePoint::Unknown, ResumePoint::parse),
        None => ResumePoint::Now,
    }
}

/// Where a durable stream continues. The header wins over `since`, because EventSource repeats its URL with the old `since`
/// when it reconnects.
pub struct LogResume(pub Option<HistoryStart>);

impl FromRequestParts<AppState> for LogResume {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        state: &AppState,
    ) -> std::result::Result<Self, ApiError> {
        let start = match parse_last_event_id(&parts.headers) {
            ResumePoint::Now => {
                history_start(&QueryParams::from_request_parts(parts, state).await?)?
            }
            point @ (ResumePoint::After(_) | ResumePoint::Unknown) => {
                let cursor = require_log_cursor("Last-Event-ID", point)?;
                Some(HistoryStart::AfterId(cursor.seq))
            }
        };
        Ok(Self(start))
    }
}

/// Where a frame stream continues. An unknown id is a gap and not an error, because a browser would repeat it forever.
pub struct FrameResume(pub ResumePoint);

impl FromRequestParts<AppState> for FrameResume {
    type Rejection = ApiError;

    async fn from_request_parts(
        parts: &mut Parts,
        _: &AppState,
    ) -> std::result::Result<Self, ApiError> {
        Ok(Self(parse_last_event_id(&parts.headers)))
    }
}

/// The `since` parameter as a cursor of the durable log.
pub fn since_cursor(query: &QueryParams) -> Result<Option<Cursor>> {
    log_cursor(query, "since")
}

/// A parameter that is a cursor of the durable log.
pub fn log_cursor(query: &QueryParams, name: &str) -> Result<Option<Cursor>> {
    query
        .get_single(name)?
        .map(|text| require_log_cursor(name, ResumePoint::parse(text)))
        .transpose()
}

/// The `since` parameter of message history and of durable streams: an id when it is all digits, else an RFC 3339 instant.
pub fn history_start(query: &QueryParams) -> Result<Option<HistoryStart>> {
    let Some(text) = query.get_single("since")? else {
        return Ok(None);
    };
    if let ResumePoint::After(Cursor { epoch: 0, seq }) = ResumePoint::parse(text) {
        return Ok(Some(HistoryStart::AfterId(seq)));
    }
    // The plus of a time zone offset is often sent unescaped and then decodes to a space.
    UnixMicros::parse(&text.replace(' ', "+"))
        .map(|at| Some(HistoryStart::FromTime(at)))
        .ok_or_else(|| {
            Error::validation("since must be an id (digits only) or an RFC 3339 instant")
        })
}

/// A cursor of the durable log, which has no epoch; `source` names the parameter or header in the error.
fn require_log_cursor(source: &str, point: ResumePoint) -> Result<Cursor> {
    match point {
        ResumePoint::After(cursor @ Cursor { epoch: 0, .. }) => Ok(cursor),
        ResumePoint::After(_) | ResumePoint::Now | ResumePoint::Unknown => Err(Error::validation(
            format!("{source} is not an id that this hub gave out"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn query(raw: &str) -> QueryParams {
        QueryParams::parse(raw).unwrap()
    }

    fn last_event_id(value: &[u8]) -> ResumePoint {
        let value = HeaderValue::from_bytes(value).unwrap();
        parse_last_event_id(&HeaderMap::from_iter([(
            http::HeaderName::from_static("last-event-id"),
            value,
        )]))
    }

    ///
    #[test]
    fn a_header_is_a_cursor_nothing_or_unknown() {
        assert_eq!(parse_last_event_id(&HeaderMap::new()), ResumePoint::Now);
        assert_eq!(last_event_id(b""), ResumePoint::Now);
        assert_eq!(
            last_event_id(b"7"),
            ResumePoint::After(Cursor::from_log_seq(7))
        );
        let frame_cursor = Cursor { epoch: 3, seq: 7 };
        assert_eq!(last_event_id(b"3-7"), ResumePoint::After(frame_cursor));
        for bad in [
            &b"x"[..],
            b"-1",
            b"0-7",
            b"\xc3\xa9",
            b"99999999999999999999",
        ] {
            assert_eq!(last_event_id(bad), ResumePoint::Unknown, "{bad:?}");
        }
    }

    ///
    #[test]
    fn history_starts_at_an_id_or_an_instant_and_at_nothing_else() {
        assert_eq!(
            history_start(&query("since=5")).unwrap(),
            Some(HistoryStart::AfterId(5))
        );
        let instant = Some(HistoryStart::FromTime(UnixMicros(0)));
        for same in [
            "1970-01-01T00:00:00Z",
            "1970-01-01T02:00:00+02:00",
            "1970-01-01T02:00:00%2B02:00",
        ] {
            assert_eq!(
                history_start(&query(&format!("since={same}"))).unwrap(),
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
                history_start(&query(bad))
                    .unwrap_err()
                    .message
                    .contains("since"),
                "{bad}"
            );
        }
    }

    ///
    #[test]
    fn a_page_of_rows_takes_a_cursor_of_the_log_only() {
        assert_eq!(
            since_cursor(&query("since=7")).unwrap(),
            Some(Cursor::from_log_seq(7))
        );
        assert!(since_cursor(&query("since=2026-01-01T00:00:00Z")).is_err());
        assert!(
            require_log_cursor("Last-Event-ID", ResumePoint::parse("3-7"))
                .unwrap_err()
                .message
                .contains("Last-Event-ID")
        );
    }
}
