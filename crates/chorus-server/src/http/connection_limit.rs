//! The limit of open connections (D-19). A connection past it gets a 503 in JSON with `Retry-After`.

use super::raw_refusal;
use chorus_hub::Clock;
use chorus_wire::{Error, ErrorCode, limits};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// `Retry-After` of the rejection, in seconds.
const RETRY_AFTER: u64 = 5;
/// Max time to write the rejection and let the client read it.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(1);
const REJECTION_MESSAGE: &str =
    "every connection that this hub may have is taken; come back in a moment";

/// Hands out a permit per open connection.
pub struct ConnectionLimit {
    permits: Arc<Semaphore>,
    rejection_permits: Arc<Semaphore>,
    /// Whether the current overload has been logged.
    full_logged: bool,
    clock: Clock,
}

impl ConnectionLimit {
    pub fn new(max_connections: usize, clock: Clock) -> Self {
        let permits = Arc::new(Semaphore::new(max_connections.min(Semaphore::MAX_PERMITS)));
        Self {
            permits,
            rejection_permits: Arc::new(Semaphore::new(limits::REFUSED_CONNECTIONS_ANSWERED)),
            full_logged: false,
            clock,
        }
    }

    /// The clock that refusals are stamped with.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// A permit, to be held while the connection is open; `None` at the limit.
    pub fn try_acquire(&mut self) -> Option<OwnedSemaphorePermit> {
        let permit = self.permits.clone().try_acquire_owned().ok();
        let is_full = permit.is_none();
        if !std::mem::replace(&mut self.full_logged, is_full) && is_full {
            tracing::warn!("the connection limit is reached; new connections are rejected");
        }
        permit
    }

    /// Answers with 503 and closes. A TLS connection is closed at once, because the handshake is the expensive part.
    pub fn reject_connection(&self, socket: TcpStream, secure: bool) {
        if let (false, Ok(permit)) = (secure, self.rejection_permits.clone().try_acquire_owned()) {
            let error = Error {
                retry_after: Some(RETRY_AFTER),
                ..Error::new(ErrorCode::Unavailable, REJECTION_MESSAGE)
            };
            let response = raw_refusal::encode_refusal(&error, self.clock.now());
            tokio::spawn(async move {
                let _rejection_permit = permit;
                let _ = tokio::time::timeout(REJECTION_TIMEOUT, write_rejection(socket, response))
                    .await;
            });
        }
    }
}

async fn write_rejection(mut socket: TcpStream, response: Vec<u8>) -> std::io::Result<()> {
    // Waits for the request: clients treat a response that precedes it as a broken connection.
    socket.peek(&mut [0]).await?;
    raw_refusal::write_refusal(&mut socket, &response).await
}
