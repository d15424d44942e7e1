//! SIGINT and SIGTERM: the first asks the command to stop, the second ends the process.

use crate::fail::Fail;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// True after the first SIGINT or SIGTERM; the second ends the process at once.
#[derive(Clone)]
pub struct StopSignal(watch::Receiver<bool>);

impl StopSignal {
    pub fn watch() -> Result<Self, Fail> {
        let signal_error = |e| Fail::usage_error(format!("cannot watch for signals: {e}"));
        let mut interrupt = signal(SignalKind::interrupt()).map_err(signal_error)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(signal_error)?;
        let (stop_sender, stop) = watch::channel(false);
        tokio::spawn(async move {
            for is_second in [false, true] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if is_second {
                    std::process::exit(130);
                }
                stop_sender.send_replace(true);
            }
        });
        Ok(Self(stop))
    }

    /// Waits for the first signal.
    pub async fn wait_requested(&mut self) {
        // The sender lives as long as the process.
        let _ = self.0.wait_for(|stop| *stop).await;
    }
}
