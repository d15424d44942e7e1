//! A socket that reports pending writes and gives up on a peer that reads nothing.

use chorus_wire::limits;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Sets `is_write_pending` while a write waits for the peer, and fails after `limits::REQUEST_DEADLINE` without progress.
pub struct WatchedSocket<S> {
    socket: S,
    is_write_pending: Arc<AtomicBool>,
    write_deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> WatchedSocket<S> {
    pub fn new(socket: S, is_write_pending: Arc<AtomicBool>) -> Self {
        Self {
            socket,
            is_write_pending,
            write_deadline: None,
        }
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
        if written.is_ready() {
            self.write_deadline = None;
            return written;
        }
        let write_deadline = self.write_deadline.get_or_insert_with(|| {
            Box::pin(tokio::time::sleep_until(
                Instant::now() + limits::REQUEST_DEADLINE,
            ))
        });
        ready!(write_deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
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
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.track_write(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, bytes);
        self.track_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
