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
const HEARING: Duration = Duration::from_secs(1);
/// What it may say meanwhile: a connection that is closed on unread bytes is reset, and the answer is lost with it.
const UNREAD: u64 = 16 * 1024;

/// The door of a house with so many places.
pub struct Door {
    places: Arc<Semaphore>,
    telling: Arc<Semaphore>,
    /// It has been logged that the house is full.
    full: bool,
    clock: Clock,
}

impl Door {
    pub fn new(places: usize, clock: Clock) -> Self {
        let places = Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)));
        Self {
            places,
            telling: Arc::new(Semaphore::new(limits::TURNED_AWAY)),
            full: false,
            clock,
        }
    }

    /// A place, to be held for as long as the connection is open.
    pub fn enter(&mut self) -> Option<OwnedSemaphorePermit> {
        let place = self.places.clone().try_acquire_owned().ok();
        let full = place.is_none();
        if !std::mem::replace(&mut self.full, full) && full {
            tracing::warn!("every place is taken; connections are turned away");
        }
        place
    }

    /// Over TLS nothing can be said without a handshake, which is the dear part: such a connection is just closed.
    pub fn turn_away(&self, socket: TcpStream, secure: bool) {
        if let (false, Ok(turn)) = (secure, self.telling.clone().try_acquire_owned()) {
            let answer = answer(&self.clock);
            tokio::spawn(async move {
                let _turn = turn;
                let _ = tokio::time::timeout(HEARING, tell(socket, answer)).await;
            });
        }
    }
}

async fn tell(mut socket: TcpStream, answer: String) -> std::io::Result<()> {
    // Clients take an answer that comes before their question for a broken connection.
    socket.peek(&mut [0]).await?;
    socket.write_all(answer.as_bytes()).await?;
    socket.shutdown().await?;
    let mut said = socket.take(UNREAD);
    while said.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

/// The form of R-13, which most paths have: nobody knows yet what is asked for.
fn answer(clock: &Clock) -> String {
    let error = serde_json::json!({"code": Code::Unavailable.as_str(),
        "message": "every connection that this hub may have is taken; come back in a moment"});
    let metadata = serde_json::json!({"timestamp": clock.now().millis()});
    let body =
        serde_json::json!({"success": false, "error": error, "metadata": metadata}).to_string();
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\nretry-after: {RETRY_AFTER}\r\n\
         cache-control: no-store\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}
