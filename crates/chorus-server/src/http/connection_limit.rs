//! The limit of open connections (D-19). A connection past it gets a 503 in JSON with `Retry-After`.

use chorus_hub::Clock;
use chorus_wire::{ErrorCode, limits};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// `Retry-After` of the rejection, in seconds.
const RETRY_AFTER: u64 = 5;
/// Max time to write the rejection and let the client read it.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(1);
/// Bytes read from a rejected client before the close: closing with unread bytes resets the connection and loses the response.
const MAX_UNREAD_BYTES: u64 = 16 * 1024;

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
            let response = rejection_response(&self.clock);
            tokio::spawn(async move {
                let _rejection_permit = permit;
                let _ = tokio::time::timeout(REJECTION_TIMEOUT, write_rejection(socket, response))
                    .await;
            });
        }
    }
}

async fn write_rejection(mut socket: TcpStream, response: String) -> std::io::Result<()> {
    // Waits for the request: clients treat a response that precedes it as a broken connection.
    socket.peek(&mut [0]).await?;
    socket.write_all(response.as_bytes()).await?;
    socket.shutdown().await?;
    let mut unread = socket.take(MAX_UNREAD_BYTES);
    while unread.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

/// In the wrapped form of R-13, which most paths use: the path is not known yet.
fn rejection_response(clock: &Clock) -> String {
    let error = serde_json::json!({"code": ErrorCode::Unavailable.as_str(),
        "message": "every connection that this hub may have is taken; come back in a moment"});
    let metadata = serde_json::json!({"timestamp": clock.now().to_rfc3339_millis()});
    let body =
        serde_json::json!({"success": false, "error": error, "metadata": metadata}).to_string();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\nretry-after: {RETRY_AFTER}\r\n\
         cache-control: no-store\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}
