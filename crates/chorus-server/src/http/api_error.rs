//! Errors on their way to the client, in the form of the protocol whose path was requested (TRN-39, TRN-40, R-13).

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use chorus_wire::frame::FrameError;
use chorus_wire::reply::{FailureReply, MarketFailure};
use chorus_wire::{Error, ErrorCode, time::UnixMicros};
use http::{HeaderValue, StatusCode, header};

/// The JSON form of an error body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorFormat {
    Wrapped,
    /// `{"error_code","error_message"}`, the form of the jobs document (R-65).
    Market,
    /// `{"code","field"?,"message"}`, the form of the fan-out draft (R-45).
    Frame,
}

/// Paths whose errors have the form of the fan-out draft.
const FRAME_PATHS: [&str; 3] = ["/frames", "/handles", "/orgs"];
/// Paths whose errors have the form of the jobs document.
const MARKET_PATHS: [&str; 9] = [
    "/jobs",
    "/board",
    "/transfer",
    "/heartbeat",
    "/skills",
    "/reputation",
    "/accounts",
    "/audit",
    "/economy",
];

impl ErrorFormat {
    /// The form for this path; it also applies to errors raised before or outside a handler.
    pub fn for_path(path: &str) -> Self {
        let is_under = |root: &str| {
            path.strip_prefix(root)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if FRAME_PATHS.into_iter().any(is_under) {
            Self::Frame
        } else if MARKET_PATHS.into_iter().any(is_under) {
            Self::Market
        } else {
            Self::Wrapped
        }
    }
}

/// An error response. [`write_error_body`] serialises it, where the clock, the path and the request id are known.
#[derive(Clone, Debug)]
pub enum ApiError {
    /// With a code of the hub's catalogue.
    Hub(Error, ErrorFormat),
    /// With a code of the frame catalogue.
    Frame(FrameError),
}

impl ApiError {
    pub fn new(error: Error, format: ErrorFormat) -> Self {
        Self::Hub(error, format)
    }

    fn status(&self) -> u16 {
        match self {
            Self::Hub(error, _) => error.code.status(),
            Self::Frame(error) => error.code.status(),
        }
    }
}

impl From<FrameError> for ApiError {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self::new(error, ErrorFormat::Wrapped)
    }
}

impl From<ErrorCode> for ApiError {
    fn from(code: ErrorCode) -> Self {
        Error::from(code).into()
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() =
            StatusCode::from_u16(self.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.extensions_mut().insert(self);
        response
    }
}

/// Writes the error body and logs the cause; no other place does either. `path_format` is the form of the request's path.
pub fn write_error_body(
    response: &mut Response,
    now: UnixMicros,
    request_id: &str,
    path_format: ErrorFormat,
) {
    let api_error = match (response.extensions_mut().remove::<ApiError>(), path_format) {
        (None, _) => return,
        (Some(ApiError::Hub(error, _)), ErrorFormat::Frame) => ApiError::Frame(error.into()),
        (Some(ApiError::Hub(error, _)), ErrorFormat::Market) => {
            ApiError::Hub(error, ErrorFormat::Market)
        }
        (Some(api_error), ErrorFormat::Wrapped | ErrorFormat::Market | ErrorFormat::Frame) => {
            api_error
        }
    };
    let status = api_error.status();
    let (body, code, cause, retry_after) = match api_error {
        ApiError::Hub(error, format) => (
            encode_hub_error(&error, format, now),
            error.code.as_str(),
            error.cause,
            error.retry_after,
        ),
        ApiError::Frame(error) => (
            error.to_json().into_bytes(),
            error.code.as_str(),
            error.cause,
            error.retry_after,
        ),
    };
    if let Some(cause) = cause {
        tracing::error!(request_id, code, cause, "request failed");
    }
    *response.body_mut() = Body::from(body);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    if status == 401 {
        // A handler may have set a challenge with more detail.
        headers
            .entry(header::WWW_AUTHENTICATE)
            .or_insert(HeaderValue::from_static("Bearer realm=\"chorus\""));
    }
    if let Some(seconds) = retry_after.or(matches!(status, 429 | 503).then_some(1)) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
}

fn encode_hub_error(error: &Error, format: ErrorFormat, now: UnixMicros) -> Vec<u8> {
    let body = match format {
        ErrorFormat::Wrapped => serde_json::to_vec(&FailureReply::new(error, now)),
        ErrorFormat::Market => serde_json::to_vec(&MarketFailure {
            error_code: error.code.as_str().into(),
            error_message: error.message.clone(),
        }),
        ErrorFormat::Frame => serde_json::to_vec(&FrameError::from(error.clone())),
    };
    body.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    async fn encode(error: ApiError) -> (http::response::Parts, String) {
        encode_for_path(error, ErrorFormat::Wrapped).await
    }

    async fn encode_for_path(
        error: ApiError,
        path_format: ErrorFormat,
    ) -> (http::response::Parts, String) {
        let mut response = error.into_response();
        write_error_body(&mut response, UnixMicros(0), "r", path_format);
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (parts, String::from_utf8(body.to_vec()).unwrap())
    }

    /// TRN-39, TRN-40
    #[tokio::test]
    async fn an_error_has_the_printed_form_and_hides_its_cause() {
        let (parts, body) = encode(Error::unavailable("the disk is full").into()).await;
        assert_eq!(parts.status, 503);
        assert_eq!(parts.headers[header::RETRY_AFTER], "1");
        assert!(
            body.starts_with(r#"{"success":false,"error":{"code":"ERR_UNAVAILABLE","message":""#),
            "{body}"
        );
        assert!(
            body.ends_with(r#""metadata":{"timestamp":"1970-01-01T00:00:00.000Z"}}"#),
            "{body}"
        );
        assert!(!body.contains("disk"));
    }

    /// R-65
    #[tokio::test]
    async fn a_market_error_has_the_jobs_documents_form() {
        let error = ApiError::new(
            Error::validation("agent_id is required"),
            ErrorFormat::Market,
        );
        let (parts, body) = encode(error).await;
        assert_eq!(parts.status, 400);
        assert_eq!(
            body,
            r#"{"error_code":"ERR_VALIDATION","error_message":"agent_id is required"}"#
        );
    }

    #[tokio::test]
    async fn a_401_names_the_bearer_scheme() {
        let (parts, _) = encode(ErrorCode::Unauthorized.into()).await;
        assert!(
            parts.headers[header::WWW_AUTHENTICATE]
                .to_str()
                .unwrap()
                .starts_with("Bearer")
        );
    }

    /// R-45, R-53, FRM-88: every error on a frame path has the draft's form, wherever it is raised.
    #[tokio::test]
    async fn every_error_on_a_frame_path_has_the_drafts_form() {
        for path in [
            "/frames",
            "/handles/~alice/stream",
            "/orgs/~acme/members/~bob",
        ] {
            assert_eq!(ErrorFormat::for_path(path), ErrorFormat::Frame, "{path}");
        }
        for path in ["/", "/framework", "/agents/frames", "/messages", "/organs"] {
            assert_eq!(ErrorFormat::for_path(path), ErrorFormat::Wrapped, "{path}");
        }
        let (parts, body) =
            encode_for_path(ErrorCode::RateLimited.into(), ErrorFormat::Frame).await;
        assert_eq!(
            (
                parts.status.as_u16(),
                parts.headers[header::RETRY_AFTER].as_bytes()
            ),
            (429, &b"1"[..])
        );
        assert!(
            body.starts_with(r#"{"code":"rate-limited","message":""#),
            "{body}"
        );
        let doubled = Error::invalid_field("filter", "filter is given twice");
        let (_, body) = encode_for_path(doubled.into(), ErrorFormat::Frame).await;
        assert_eq!(
            body,
            r#"{"code":"field-invalid","field":"filter","message":"filter is given twice"}"#
        );
        let (parts, body) = encode_for_path(
            FrameError::from(chorus_wire::contract::ContractFault::missing("kind")).into(),
            ErrorFormat::Frame,
        )
        .await;
        assert_eq!(parts.status, 400);
        assert_eq!(
            body,
            r#"{"code":"field-missing","field":"kind","message":"kind is required"}"#
        );
    }
}
