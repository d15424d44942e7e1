//! How many may be connected at once (D-19). Whoever comes when every place is taken is told so in JSON, and to come back.

use chorus_hub::Clock;
use chorus_wire::{Code, limits};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// When it may be worth trying again, in seconds.
const RETRY_AFTER: u64 = 5;
/// How long one who was told has to hear it.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(1);
/// What it may say meanwhile: a connection that is closed on unread bytes is reset, and the answer is lost with it.
const MAX_UNREAD_BYTES: u64 = 16 * 1024;

/// The door of a house with so many places.
pub struct ConnectionLimit {
    permits: Arc<Semaphore>,
    rejection_permits: Arc<Semaphore>,
    /// It has been logged that the house is full.
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

    /// A place, to be held for as long as the connection is open.
    pub fn try_acquire(&mut self) -> Option<OwnedSemaphorePermit> {
        let permit = self.permits.clone().try_acquire_owned().ok();
        let is_full = permit.is_none();
        if !std::mem::replace(&mut self.full_logged, is_full) && is_full {
            tracing::warn!("every place is taken; connections are turned away");
        }
        permit
    }

    /// Over TLS nothing can be said without a handshake, which is the dear part: such a connection is just closed.
    pub fn reject_connection(&self, socket: TcpStream, secure: bool) {
        if let (false, Ok(permit)) = (secure, self.rejection_permits.clone().try_acquire_owned()) {
            let response = rejection_response(&self.clock);
            tokio::spawn(async move {
                let _turn = permit;
                let _ = tokio::time::timeout(REJECTION_TIMEOUT, write_rejection(socket, response))
                    .await;
            });
        }
    }
}

async fn write_rejection(mut socket: TcpStream, response: String) -> std::io::Result<()> {
    // Clients take an answer that comes before their question for a broken connection.
    socket.peek(&mut [0]).await?;
    socket.write_all(response.as_bytes()).await?;
    socket.shutdown().await?;
    let mut unread = socket.take(MAX_UNREAD_BYTES);
    while unread.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

/// The form of R-13, which most paths have: nobody knows yet what is asked for.
fn rejection_response(clock: &Clock) -> String {
    let error = serde_json::json!({"code": Code::Unavailable.as_str(),
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
