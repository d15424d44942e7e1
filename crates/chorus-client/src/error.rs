//! The client's error type, by what the caller can do about it.

use std::{fmt, path::PathBuf, time::Duration};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The peer could not be reached, or the connection broke. A retry may help.
    #[error("{0}")]
    Transport(String),
    /// The hub answered with an error.
    #[error("{0}")]
    Refused(ErrorResponse),
    /// The answer does not follow the protocol.
    #[error("the answer was not understood: {0}")]
    Answer(String),
    /// The caller's input is invalid; nothing was sent.
    #[error("{0}")]
    Input(String),
    /// A local file could not be read or written.
    #[error("{path}: {cause}", path = .path.display())]
    File { path: PathBuf, cause: String },
}

/// An error of the hub, as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorResponse {
    pub status: u16,
    pub code: String,
    pub message: String,
    pub retry_after: Option<Duration>,
}

impl ErrorResponse {
    /// Whether the same request may succeed later. The status decides, so that it works with other hubs too.
    pub fn is_transient(&self) -> bool {
        // ERR_REGISTRY_FULL is a 429, but waiting does not free a slot.
        matches!(self.status, 408 | 429 | 500 | 502 | 503 | 504) && self.code != "ERR_REGISTRY_FULL"
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl Error {
    pub fn file_error(path: impl Into<PathBuf>, cause: impl fmt::Display) -> Self {
        Error::File {
            path: path.into(),
            cause: cause.to_string(),
        }
    }

    /// The hub's error, if the hub answered with one.
    pub fn error_response(&self) -> Option<&ErrorResponse> {
        match self {
            Error::Refused(refusal) => Some(refusal),
            Error::Transport(_) | Error::Answer(_) | Error::Input(_) | Error::File { .. } => None,
        }
    }

    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Transport(_) => true,
            Error::Refused(refusal) => refusal.is_transient(),
            Error::Answer(_) | Error::Input(_) | Error::File { .. } => false,
        }
    }
}

impl From<chorus_wire::Error> for Error {
    fn from(error: chorus_wire::Error) -> Self {
        Error::Input(error.message)
    }
}
