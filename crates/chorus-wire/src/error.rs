//! Every error that a client can get: the closed catalogue of codes, and the error type that carries one.

use std::fmt;

/// Defines an enum of error codes from one row per code: variant, text, HTTP status, whether a retry may
/// succeed, default message.
macro_rules! error_catalogue {
    ($(#[$about:meta])* $name:ident {
        $($variant:ident $code:literal $status:literal $retryable:literal $message:literal;)+
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($variant),+ }

        impl $name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code as replies print it.
            pub const fn as_str(self) -> &'static str { match self { $(Self::$variant => $code),+ } }

            /// The HTTP status of the reply.
            pub const fn status(self) -> u16 { match self { $(Self::$variant => $status),+ } }

            /// Whether the same request may succeed later.
            pub const fn retryable(self) -> bool { match self { $(Self::$variant => $retryable),+ } }

            /// The default message: what the code means, in one sentence.
            pub const fn sentence(self) -> &'static str { match self { $(Self::$variant => $message),+ } }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                // Two errors may have one text, with which the documents print both.
                let mut codes: Vec<&str> = Vec::new();
                for code in Self::ALL.iter().map(|code| code.as_str()) {
                    if !codes.contains(&code) {
                        codes.push(code);
                    }
                }
                utoipa::openapi::schema::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .description(Some("Which error it is, for programs. A later version may add codes."))
                    .enum_values(Some(codes))
                    .into()
            }
        }

        impl utoipa::ToSchema for $name {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
        }
    };
}

pub(crate) use error_catalogue;

error_catalogue! {
    /// The codes of all protocols but frames, as `error.code` or `error_code` shows them.
    ErrorCode {
        Validation "ERR_VALIDATION" 400 false "The request is malformed; the message names the field to mend.";
        SenderNotRegistered "ERR_SENDER_NOT_REGISTERED" 400 false "The envelope's sender_id is not registered here.";
        EndpointBlocked "ERR_ENDPOINT_BLOCKED" 400 false "The endpoint is on a private, loopback or otherwise unreachable address.";
        Deprecated "ERR_DEPRECATED" 400 false "The key may not travel in the URL; ask POST /agent/session for a single-use token.";
        SkillMismatch "SKILL_MISMATCH" 400 false "No agent that was asked has this skill for this input.";
        BudgetInsufficient "BUDGET_INSUFFICIENT" 400 false "The budget is below the cost.";
        TransferFailed "TRANSFER_FAILED" 400 false "The credits do not suffice for this payment.";
        Unauthorized "ERR_UNAUTHORIZED" 401 false "A valid key is required: Authorization: Bearer <api_key>.";
        Forbidden "ERR_FORBIDDEN" 403 false "This key may not do that.";
        SenderMismatch "ERR_SENDER_MISMATCH" 403 false "An agent's key sends only as that agent.";
        Scope "ERR_SCOPE" 403 false "The key lacks the scope that this needs; the message names it.";
        Quota "ERR_QUOTA" 403 false "This is beyond a quota; the message names it.";
        OwnerTaken "ERR_OWNER_TAKEN" 403 false "The owner_id belongs to another key.";
        InviteRequired "ERR_INVITE_REQUIRED" 403 false "This hub asks for a valid invite_code.";
        InviteRevoked "ERR_INVITE_REVOKED" 403 false "The invite code was revoked.";
        InviteExhausted "ERR_INVITE_EXHAUSTED" 403 false "The invite code has no uses left.";
        InviteExpired "ERR_INVITE_EXPIRED" 403 false "The invite code has expired.";
        Origin "ERR_ORIGIN" 403 false "The request comes from a web page, or asks for a host, that this hub does not answer.";
        NameReserved "ERR_NAME_RESERVED" 403 false "The name is reserved for operators of this hub.";
        Blocked "ERR_BLOCKED" 403 false "The receiver has blocked the sender.";
        NotAContact "ERR_NOT_A_CONTACT" 403 false "The receiver takes this only from its contacts.";
        AgentNotFound "ERR_AGENT_NOT_FOUND" 404 false "No agent of that name is registered here.";
        NotFound "ERR_NOT_FOUND" 404 false "There is nothing here.";
        MethodNotAllowed "ERR_METHOD_NOT_ALLOWED" 405 false "This path does not take that method.";
        Gone "ERR_GONE" 410 false "It was here and is no more: it expired, or what it belonged to is gone.";
        AgentIdTaken "ERR_AGENT_ID_TAKEN" 409 false "The name is taken; send its current key to update it.";
        NameConfusable "ERR_NAME_CONFUSABLE" 409 false "The name looks like that of another agent of the same host.";
        IdempotencyConflict "ERR_IDEMPOTENCY_CONFLICT" 409 false "The Idempotency-Key was used with another body.";
        ResponseConflict "ERR_RESPONSE_CONFLICT" 409 false "The message already has another response; the first one stands.";
        Conflict "ERR_CONFLICT" 409 false "It contradicts what is already there.";
        AgentOffline "AGENT_OFFLINE" 409 true "The agent is offline: it missed its heartbeats, or its endpoint refused a job.";
        JobSettled "TRANSFER_FAILED" 409 false "The job is paid by the hub, or was paid before.";
        TransferConflict "ERR_TRANSFER_CONFLICT" 409 false "The transfer_id was used with another body.";
        JobConflict "ERR_JOB_CONFLICT" 409 false "The job_id was used with another request.";
        JobClosed "ERR_JOB_CLOSED" 409 false "The job has come to its end already; the first result stands.";
        TooLarge "ERR_TOO_LARGE" 413 false "The request is larger than this hub accepts.";
        UriTooLong "ERR_URI_TOO_LONG" 414 false "The path and the query are longer than this hub accepts.";
        UnsupportedMediaType "ERR_UNSUPPORTED_MEDIA_TYPE" 415 false "The body needs Content-Type: application/json.";
        HeadersTooLarge "ERR_HEADERS_TOO_LARGE" 431 false "The request's headers are larger than this hub accepts.";
        RateLimited "ERR_RATE_LIMITED" 429 true "Too many requests; Retry-After says when to come back.";
        RegistryFull "ERR_REGISTRY_FULL" 429 true "This hub takes no more agents.";
        TooManyStreams "ERR_TOO_MANY_STREAMS" 429 true "This agent has too many open streams; close one first.";
        RequestTimeout "ERR_REQUEST_TIMEOUT" 408 true "The request was not sent completely in time.";
        Internal "ERR_INTERNAL" 500 true "The hub failed; the request id finds the reason in its log.";
        ExecutionError "EXECUTION_ERROR" 502 false "The agent failed while it worked on the job.";
        AgentUnreachable "ERR_AGENT_UNREACHABLE" 502 true "The receiver's endpoint could not be reached.";
        Unavailable "ERR_UNAVAILABLE" 503 true "The hub cannot do this right now; try again.";
        Timeout "ERR_TIMEOUT" 504 true "The receiver did not answer in time.";
    }
}

/// An error with two texts: `message` goes to the client, `cause` only to the log.
#[derive(Clone, Debug)]
pub struct Error {
    pub code: ErrorCode,
    pub message: String,
    /// The field, parameter or header at fault. Only the frame form shows it apart from the message (FRM-88).
    pub field: Option<String>,
    pub cause: Option<String>,
    /// Seconds after which to retry, if known.
    pub retry_after: Option<u64>,
}

impl Error {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            field: None,
            cause: None,
            retry_after: None,
        }
    }

    /// The request is malformed; `message` names the field to correct.
    pub fn validation(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Validation, message)
    }

    /// The same, with the field, parameter or header at fault; `message` names it too.
    pub fn invalid_field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: Some(field.into()),
            ..Self::validation(message)
        }
    }

    /// The hub failed. The client gets the code's default message, the log gets the cause.
    pub fn internal(cause: impl fmt::Display) -> Self {
        Self {
            cause: Some(cause.to_string()),
            ..ErrorCode::Internal.into()
        }
    }

    /// The hub cannot do it now. The client may retry after a second, the log gets the cause.
    pub fn unavailable(cause: impl fmt::Display) -> Self {
        Self {
            cause: Some(cause.to_string()),
            retry_after: Some(1),
            ..ErrorCode::Unavailable.into()
        }
    }
}

impl From<ErrorCode> for Error {
    fn from(code: ErrorCode) -> Self {
        Self::new(code, code.sentence())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Error {}
