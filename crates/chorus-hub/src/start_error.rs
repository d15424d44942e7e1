//! Why a hub did not start, in the words that its operator reads.

/// Why a hub did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("another hub is running on {0}; stop it or choose another --data-dir")]
    Locked(String),
    /// Files that SQLite would read in part, or wrong, without a word.
    #[error(
        "{file} is damaged: {what}. If the hub goes on, {loss}. Restore a backup, or go on without it: chorus serve --accept-damage"
    )]
    Damaged {
        file: String,
        what: String,
        loss: String,
    },
    #[error("{what}: {cause}")]
    Store { what: String, cause: String },
    #[error(
        "the disk of {data_dir} is full ({free_kilobytes} KB are left): {fault}; free at least {needed_megabytes} MB and start the hub again"
    )]
    DiskFull {
        data_dir: String,
        free_kilobytes: u64,
        needed_megabytes: u64,
        fault: String,
    },
    #[error("the bus: {0}")]
    Bus(String),
    #[error("{0}")]
    OperatorKey(String),
}
