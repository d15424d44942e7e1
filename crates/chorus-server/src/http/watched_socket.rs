//! A socket that reports pending writes, gives up on a peer that reads nothing, and keeps back the parser's own refusals.

use super::drain_rate::DrainRate;
use super::exchange_position::ExchangePosition;
use chorus_wire::limits;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Head and body of a small answer are joined before they are written: for the kernel one buffer costs less than two.
const JOINED_WRITE_BYTES: usize = 2048;

/// Sets `is_write_pending` while a write waits for the peer. Fails after `limits::REQUEST_DEADLINE` without progress, and
/// when the peer takes an answer more slowly than `limits::ANSWER_DRAIN_RATE`.
pub struct WatchedSocket<S> {
    socket: S,
    is_write_pending: Arc<AtomicBool>,
    write_deadline: Option<Pin<Box<Sleep>>>,
    drain_rate: DrainRate,
    /// The status with which the HTTP parser refused a request. Its response has no body, so it is not written: the
    /// connection writes one in JSON instead.
    parser_refusal: Option<u16>,
    position: Arc<ExchangePosition>,
    /// The exchanges whose responses are written to their last byte.
    written_exchanges: usize,
}

impl<S> WatchedSocket<S> {
    pub fn new(
        socket: S,
        is_write_pending: Arc<AtomicBool>,
        position: Arc<ExchangePosition>,
    ) -> Self {
        Self {
            socket,
            is_write_pending,
            write_deadline: None,
            drain_rate: DrainRate::default(),
            parser_refusal: None,
            position,
            written_exchanges: 0,
        }
    }

    /// The status with which the parser refused the last request, if it did.
    pub fn parser_refusal(&self) -> Option<u16> {
        self.parser_refusal
    }

    /// Whether these bytes are a refusal of the parser, which is then kept back.
    fn keep_refusal_back(&mut self, bytes: &[u8]) -> bool {
        // Otherwise they belong to the response of a request that the service was given.
        let is_between_exchanges = self.position.count_ended() == Some(self.written_exchanges);
        let refusal = parse_refusal_status(bytes).filter(|_| is_between_exchanges);
        self.parser_refusal = self.parser_refusal.or(refusal);
        refusal.is_some()
    }

    pub fn into_socket(self) -> S {
        self.socket
    }

    fn track_write(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.is_write_pending
            .store(written.is_pending(), Ordering::Relaxed);
        if let Poll::Ready(result) = &written {
            self.write_deadline = None;
            self.drain_rate
                .add_written(result.as_ref().copied().unwrap_or_default());
            return written;
        }
        let drain_rate = &mut self.drain_rate;
        let write_deadline = self.write_deadline.get_or_insert_with(|| {
            let now = Instant::now();
            let deadline = drain_rate.deadline(now);
            Box::pin(tokio::time::sleep_until(
                deadline.min(now + limits::REQUEST_DEADLINE),
            ))
        });
        ready!(write_deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// Copies the parts into one buffer, if they fit.
fn join_parts<'a>(parts: &[io::IoSlice<'_>], into: &'a mut [u8]) -> Option<&'a [u8]> {
    let mut length = 0;
    for part in parts {
        into.get_mut(length..length + part.len())?
            .copy_from_slice(part);
        length += part.len();
    }
    Some(&into[..length])
}

/// The status of a refusal that the HTTP parser wrote.
fn parse_refusal_status(bytes: &[u8]) -> Option<u16> {
    let status = bytes.strip_prefix(b"HTTP/1.1 4")?;
    match status.get(..2)? {
        b"00" => Some(400),
        b"14" => Some(414),
        b"31" => Some(431),
        _ => None,
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedSocket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedSocket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.keep_refusal_back(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.track_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let Some(first) = bytes.iter().find(|part| !part.is_empty())
            && self.keep_refusal_back(first)
        {
            return Poll::Ready(Ok(first.len()));
        }
        let mut joined = [0; JOINED_WRITE_BYTES];
        let written = match join_parts(bytes, &mut joined) {
            Some(joined) => Pin::new(&mut self.socket).poll_write(cx, joined),
            None => Pin::new(&mut self.socket).poll_write_vectored(cx, bytes),
        };
        self.track_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.socket).poll_flush(cx);
        // The HTTP library flushes when it has nothing left to write.
        if flushed.is_ready() {
            self.drain_rate.finish();
            if let Some(ended) = self.position.count_ended() {
                self.written_exchanges = ended;
            }
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.parser_refusal.is_some() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const REFUSAL: &[u8] =
        b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

    /// a client that takes an answer byte by byte would otherwise hold it for hours.
    #[tokio::test]
    async fn a_byte_that_a_client_takes_does_not_set_its_deadline_anew() {
        let (near, mut far) = tokio::io::duplex(1);
        let mut socket = WatchedSocket::new(near, Arc::default(), Arc::default());
        let mut deadlines = Vec::new();
        for _ in 0..2 {
            // One byte fits, and the next one has to wait.
            socket.write_all(b"x").await.unwrap();
            let mut context = Context::from_waker(Waker::noop());
            let waiting = Pin::new(&mut socket).poll_write(&mut context, b"x");
            assert!(waiting.is_pending());
            deadlines.push(socket.write_deadline.as_ref().unwrap().deadline());
            far.read_exact(&mut [0]).await.unwrap();
        }
        assert!(deadlines[0] <= Instant::now() + limits::ANSWER_DRAIN_GRACE);
        assert_eq!(deadlines[0], deadlines[1], "one byte earns no time");
    }

    /// A file of a channel can have the bytes of a refusal, and a slow reader can make them a write of their own.
    #[tokio::test]
    async fn the_bytes_of_a_refusal_inside_a_response_are_written() {
        let position = Arc::<ExchangePosition>::default();
        let (near, mut far) = tokio::io::duplex(4096);
        let mut socket = WatchedSocket::new(near, Arc::default(), position.clone());
        let exchange = position.begin_exchange();
        // A body that comes in pieces is flushed between them.
        for part in [&b"HTTP/1.1 200 OK\r\n\r\n"[..], REFUSAL] {
            socket.write_all(part).await.unwrap();
            socket.flush().await.unwrap();
        }
        // A body that was taken as a whole has ended before its last bytes are written.
        drop(exchange);
        drop(position.begin_exchange());
        socket.write_all(REFUSAL).await.unwrap();
        assert_eq!(socket.parser_refusal(), None);
        socket.flush().await.unwrap();

        socket.write_all(REFUSAL).await.unwrap();
        assert_eq!(socket.parser_refusal(), Some(400), "between two exchanges");
        drop(socket);
        let mut written = Vec::new();
        far.read_to_end(&mut written).await.unwrap();
        let refusals = written
            .windows(REFUSAL.len())
            .filter(|bytes| *bytes == REFUSAL)
            .count();
        assert_eq!(refusals, 2, "the parser's own is kept back");
    }
}
