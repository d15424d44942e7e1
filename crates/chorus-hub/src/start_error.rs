//! Why a hub did not start, in the words that its operator reads.

/// Why a hub did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("another hub is running on {0}; stop it or choose another --data-dir")]
    Locked(String),
    #[error("{what}: {cause}")]
    Store { what: String, cause: String },
    #[error("the bus: {0}")]
    Bus(String),
    #[error("{0}")]
    OperatorKey(String),
}
