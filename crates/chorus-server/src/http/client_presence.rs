//! Tells the handling of a request that its client has disconnected.

use tokio::sync::watch;

/// Held by the connection while it serves the request; dropping it says that the client has left.
pub struct PresenceGuard {
    _held: watch::Sender<()>,
}

/// In the extensions of every tool call, because calls run on after a disconnect.
#[derive(Clone, Debug)]
pub struct ClientPresence(watch::Receiver<()>);

impl ClientPresence {
    pub fn begin() -> (PresenceGuard, Self) {
        let (held, presence) = watch::channel(());
        (PresenceGuard { _held: held }, Self(presence))
    }

    /// Waits until the client has left.
    pub async fn wait_left(&self) {
        let mut presence = self.0.clone();
        while presence.changed().await.is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_client_has_left_when_its_connection_is_dropped() {
        let (guard, presence) = ClientPresence::begin();
        assert!(presence.wait_left().now_or_never().is_none());
        drop(guard);
        assert!(presence.wait_left().now_or_never().is_some());
    }
}
