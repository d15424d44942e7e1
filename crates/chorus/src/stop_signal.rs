//! Being asked to stop: once politely, twice at once.

use crate::fail::Fail;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Becomes true with the first SIGINT or SIGTERM; the second ends the process there and then.
#[derive(Clone)]
pub struct StopSignal(watch::Receiver<bool>);

impl StopSignal {
    pub fn watch() -> Result<Self, Fail> {
        let wrong = |e| Fail::usage_error(format!("cannot watch for signals: {e}"));
        let mut interrupt = signal(SignalKind::interrupt()).map_err(wrong)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(wrong)?;
        let (stop_sender, stop) = watch::channel(false);
        tokio::spawn(async move {
            for last in [false, true] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if last {
                    std::process::exit(130);
                }
                stop_sender.send_replace(true);
            }
        });
        Ok(Self(stop))
    }

    /// Returns when it is time to stop.
    pub async fn wait_requested(&mut self) {
        // The sender lives as long as the process.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
