//! Faults that end a transaction whatever its statements were, so that the writer knows whether to run it again.

/// What ended a transaction while a statement ran. It is for the owner of the connection; the caller of
/// the statement gets the [`DbError`](super::DbError).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionFault {
    /// The server rolled the transaction back because of another one, or because a cached plan is stale: a retry may succeed.
    RolledBack,
    /// The connection is closed, and its uncommitted work is rolled back.
    ConnectionLost,
}
