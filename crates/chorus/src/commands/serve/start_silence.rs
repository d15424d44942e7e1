//! Keeps what a normal start logs off a terminal, where the welcome comes first.

use super::options::{LogFormat, ServeOptions};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::Level;

/// Whether lines of the log are held back. Warnings and errors never are: they say why a start takes long or fails.
#[derive(Clone)]
pub struct StartSilence(Arc<AtomicBool>);

impl StartSilence {
    /// Silence for a person at a terminal who did not say what to log.
    pub fn for_options(options: &ServeOptions) -> Self {
        let is_person = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        let is_default = options.log.is_none()
            && matches!(options.log_format.unwrap_or_default(), LogFormat::Text);
        Self(Arc::new(AtomicBool::new(is_person && is_default)))
    }

    pub fn permits(&self, level: &Level) -> bool {
        *level <= Level::WARN || !self.0.load(Ordering::Relaxed)
    }

    /// The welcome was printed.
    pub fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_never_held_back_and_nothing_is_after_the_welcome() {
        let silence = StartSilence(Arc::new(AtomicBool::new(true)));
        assert!(silence.permits(&Level::ERROR) && silence.permits(&Level::WARN));
        assert!(!silence.permits(&Level::INFO));
        silence.end();
        assert!(silence.permits(&Level::INFO) && silence.permits(&Level::TRACE));
    }
}
