//! Why a frame, a scope or a filter is refused: the closed catalogue of frame codes and the error that carries one
//! (FRM-83…94, R-45, R-53).

use crate::contract::{ContractFault, FaultKind};
use crate::error::error_catalogue;
use crate::{Error, ErrorCode, limits};
use serde::Serialize;
use std::fmt;

error_catalogue! {
    /// The codes of the frame protocol, as `code` shows them.
    FrameCode {
        JsonInvalid "json-invalid" 400 false "The body is not one JSON object without doubled keys.";
        EnvelopeVersionUnsupported "envelope-version-unsupported" 400 false "This hub speaks frames of envelope_version 1.0 only.";
        KindUnknown "kind-unknown" 400 false "The kind is none of the fifteen.";
        PayloadKindMismatch "payload-kind-mismatch" 400 false "The payload does not have the shape of the frame's kind.";
        FieldMissing "field-missing" 400 false "A required field is not there.";
        FieldInvalid "field-invalid" 400 false "A field has a value that it may not have.";
        FieldUnknown "field-unknown" 400 false "There is an unknown field; frames take no extensions.";
        FilterAxisUnknown "filter-axis-unknown" 400 false "The filter names something that frames cannot be filtered by.";
        FilterValueInvalid "filter-value-invalid" 400 false "A clause of the filter is not axis:value with a value of that axis.";
        // Not 413: a narrower scope helps, a shorter body does not.
        ExpansionTooLarge "expansion-too-large" 400 false "The scope reaches more sessions than one frame may; choose a narrower one.";
        Unauthenticated "unauthenticated" 401 false "An agent's key is required, sent as Authorization: Bearer <api_key>.";
        Forbidden "forbidden" 403 false "This key may not do that for this handle.";
        SenderIdentityMismatch "sender-identity-mismatch" 403 false "The frame speaks for another handle than the key that sent it.";
        ScopeUnauthorised "scope-unauthorised" 403 false "The sender may not address this scope.";
        Blocked "blocked" 403 false "The receiver has blocked the sender.";
        NotAContact "not-a-contact" 403 false "The receiver takes this only from its contacts.";
        NotFound "not-found" 404 false "There is no such thing at this path.";
        MethodNotAllowed "method-not-allowed" 405 false "The path does not take this method.";
        RequestTimeout "request-timeout" 408 true "The request did not arrive completely in time.";
        Conflict "conflict" 409 false "It contradicts what is already there.";
        FrameTooLarge "frame-too-large" 413 false "The frame is larger than 64 KiB.";
        UriTooLong "uri-too-long" 414 false "The path and the query are longer than this hub reads.";
        UnsupportedMediaType "unsupported-media-type" 415 false "The body needs Content-Type: application/json.";
        RateLimited "rate-limited" 429 true "Too many frames in a short time; Retry-After says when to go on.";
        TooManyStreams "too-many-streams" 429 true "The handle has too many open streams; close one first.";
        HeadersTooLarge "headers-too-large" 431 false "The request's headers are longer than this hub reads.";
        Internal "internal" 500 true "The hub failed; the request id finds the reason in its log.";
        ScopeUnimplemented "scope-unimplemented" 501 false "The scope is well-formed, but this hub does not expand it.";
        Unavailable "unavailable" 503 true "The hub cannot do this right now; try again.";
        BusUnavailable "bus-unavailable" 503 true "The hubs cannot reach one another right now; try again with the same frame_id, no session hears a frame twice.";
    }
}

impl Serialize for FrameCode {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

/// `{"code","field"?,"message"}` (FRM-83). The skipped fields are for the log and the headers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FrameError {
    pub code: FrameCode,
    /// The field at fault: `kind`, `payload.question.options[1].label`, `scope`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    pub message: String,
    #[serde(skip)]
    pub cause: Option<String>,
    /// Seconds after which to retry, if known.
    #[serde(skip)]
    pub retry_after: Option<u64>,
}

impl FrameError {
    pub fn new(code: FrameCode, message: impl Into<String>) -> Self {
        Self {
            code,
            field: None,
            message: message.into(),
            cause: None,
            retry_after: None,
        }
    }

    /// An error about one field.
    pub fn at_field(code: FrameCode, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: Some(field.into()),
            ..Self::new(code, message)
        }
    }

    /// `requirement` completes the sentence “it must be …”.
    pub fn invalid_field(field: impl Into<String>, requirement: impl fmt::Display) -> Self {
        let field = field.into();
        let message = format!("{field} must be {requirement}");
        Self::at_field(FrameCode::FieldInvalid, field, message)
    }

    pub(super) fn too_large() -> Self {
        let max_bytes = limits::FRAME_BYTES;
        Self::new(
            FrameCode::FrameTooLarge,
            format!("a frame has at most {max_bytes} bytes"),
        )
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl From<ContractFault> for FrameError {
    fn from(fault: ContractFault) -> Self {
        let code = match fault.kind {
            FaultKind::InvalidJson => FrameCode::JsonInvalid,
            FaultKind::UnknownField => FrameCode::FieldUnknown,
            FaultKind::MissingField => FrameCode::FieldMissing,
            FaultKind::InvalidField => FrameCode::FieldInvalid,
            FaultKind::TooLarge => FrameCode::FrameTooLarge,
        };
        // Bad JSON has no field, also where a key is given twice: the object has none that can be told.
        let has_field = code != FrameCode::JsonInvalid && !fault.field.is_empty();
        Self {
            field: has_field.then(|| fault.field.clone()),
            ..Self::new(code, fault.message())
        }
    }
}

impl From<FrameCode> for FrameError {
    fn from(code: FrameCode) -> Self {
        Self::new(code, code.sentence())
    }
}

/// An error of the shared parts (keys, rate limits, the store) with the frame code of the same status. The message is
/// kept.
impl From<Error> for FrameError {
    fn from(error: Error) -> Self {
        let special_codes = [
            (ErrorCode::TooManyStreams, FrameCode::TooManyStreams),
            (ErrorCode::Blocked, FrameCode::Blocked),
            (ErrorCode::NotAContact, FrameCode::NotAContact),
        ];
        let code = special_codes
            .iter()
            .find(|(shared, _)| *shared == error.code)
            .map_or_else(|| code_for_status(error.code.status()), |(_, code)| *code);
        Self {
            code,
            field: error.field,
            message: error.message,
            cause: error.cause,
            retry_after: error.retry_after,
        }
    }
}

fn code_for_status(status: u16) -> FrameCode {
    match status {
        400 => FrameCode::FieldInvalid,
        401 => FrameCode::Unauthenticated,
        403 => FrameCode::Forbidden,
        // 410 is for callbacks, which frames do not use; `not-found` is the nearest frame code.
        404 | 410 => FrameCode::NotFound,
        405 => FrameCode::MethodNotAllowed,
        408 => FrameCode::RequestTimeout,
        409 => FrameCode::Conflict,
        413 => FrameCode::FrameTooLarge,
        414 => FrameCode::UriTooLong,
        415 => FrameCode::UnsupportedMediaType,
        429 => FrameCode::RateLimited,
        431 => FrameCode::HeadersTooLarge,
        502..=504 => FrameCode::Unavailable,
        _ => FrameCode::Internal,
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for FrameError {}
