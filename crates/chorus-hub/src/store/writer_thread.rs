//! The thread of the writer.

use super::DbError;

/// Runs the writer on a thread of its own, because a commit blocks its thread.
pub(super) fn spawn_writer_thread<F: Future<Output = ()>>(
    needs_reactor: bool,
    open_and_run: impl FnOnce() -> F + Send + 'static,
) -> Result<(), DbError> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    if needs_reactor {
        runtime.enable_all();
    }
    let unavailable = |e: std::io::Error| DbError::Unavailable(e.to_string());
    let runtime = runtime.build().map_err(unavailable)?;
    std::thread::Builder::new()
        .name("chorus-writer".into())
        .spawn(move || runtime.block_on(open_and_run()))
        .map(drop)
        .map_err(unavailable)
}
