//! How an answer is written: wrapped, bare or refused, in the form its route has (TRN-38…40, R-13).

use crate::doors::Doors;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use chorus_wire::reply::{Failure, MarketFailure, Metadata, Success};
use chorus_wire::{Code, Error, time::Micros};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

pub type Answer = Result<Response, Refused>;

/// The form of an error body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Wrapped,
    /// `{"error_code","error_message"}`, the jobs document's (R-65).
    Market,
}

/// An error on its way out. It becomes bytes in [`settle`], where the clock and the request's id are known.
#[derive(Clone, Debug)]
pub struct Refused {
    error: Error,
    form: Form,
}

impl Refused {
    pub fn new(error: Error, form: Form) -> Self {
        Self { error, form }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::new(error, Form::Wrapped)
    }
}

impl From<Code> for Refused {
    fn from(code: Code) -> Self {
        Error::from(code).into()
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status_of(self.error.code);
        response.extensions_mut().insert(self);
        response
    }
}

fn status_of(code: Code) -> StatusCode {
    StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// `{"success":true,"data":…,"metadata":{…}}`
pub fn wrapped<T: Serialize>(doors: &Doors, status: StatusCode, data: T) -> Answer {
    let metadata = Metadata::at(doors.hub.clock().now());
    bare(status, &Success { success: true, data, metadata })
}

/// The value itself as JSON, serialised once.
pub fn bare<T: Serialize>(status: StatusCode, value: &T) -> Answer {
    let mut out = Vec::with_capacity(256);
    serde_json::to_writer(&mut out, value).map_err(Error::internal)?;
    Ok(json(status, out))
}

pub fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    text(status, "application/json", body)
}

pub fn text(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Writes the body of a refusal and logs its cause: the one place where both happen.
pub fn settle(response: &mut Response, now: Micros, request_id: &str) {
    let Some(Refused { error, form }) = response.extensions_mut().remove::<Refused>() else {
        return;
    };
    if let Some(cause) = &error.cause {
        tracing::error!(request_id, code = error.code.as_str(), cause, "a request failed");
    }
    let body = match form {
        Form::Wrapped => serde_json::to_vec(&Failure::new(&error, now)),
        Form::Market => serde_json::to_vec(&MarketFailure {
            error_code: error.code.as_str().into(),
            error_message: error.message.clone(),
        }),
    };
    *response.body_mut() = Body::from(body.unwrap_or_default());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let status = error.code.status();
    if status == 401 {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"chorus\""));
    }
    if let Some(seconds) = error.retry_after.or(matches!(status, 429 | 503).then_some(1)) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    async fn settled(refused: Refused) -> (http::response::Parts, String) {
        let mut response = refused.into_response();
        settle(&mut response, Micros(0), "r");
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (parts, String::from_utf8(body.to_vec()).unwrap())
    }

    /// TRN-39, TRN-40
    #[tokio::test]
    async fn an_error_has_the_printed_form_and_hides_its_cause() {
        let (parts, body) = settled(Error::unavailable("the disk is full").into()).await;
        assert_eq!(parts.status, 503);
        assert_eq!(parts.headers[header::RETRY_AFTER], "1");
        assert!(body.starts_with(r#"{"success":false,"error":{"code":"ERR_UNAVAILABLE","message":""#), "{body}");
        assert!(body.ends_with(r#""metadata":{"timestamp":"1970-01-01T00:00:00.000Z"}}"#), "{body}");
        assert!(!body.contains("disk"));
    }

    /// R-65
    #[tokio::test]
    async fn a_market_error_has_the_jobs_documents_form() {
        let refused = Refused::new(Error::validation("agent_id is required"), Form::Market);
        let (parts, body) = settled(refused).await;
        assert_eq!(parts.status, 400);
        assert_eq!(body, r#"{"error_code":"ERR_VALIDATION","error_message":"agent_id is required"}"#);
    }

    #[tokio::test]
    async fn a_missing_key_is_asked_for_by_its_scheme() {
        let (parts, _) = settled(Code::Unauthorized.into()).await;
        assert!(parts.headers[header::WWW_AUTHENTICATE].to_str().unwrap().starts_with("Bearer"));
    }
}
