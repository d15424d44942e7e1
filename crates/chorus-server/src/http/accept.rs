//! The connection loop: takes connections, serves HTTP/1.1 on them, hands streams over, and ends them when the server stops.

use crate::connection_limit::ConnectionLimit;
use crate::stream::{self, StreamHandoff};
use axum::response::{IntoResponse, Response};
use axum::{Router, extract::ConnectInfo};
use chorus_hub::delivery::StreamFeed;
use chorus_wire::limits;
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::{Instant, Sleep, timeout};
use tower::Service;

/// What a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long to wait when the system has no more sockets to give.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Takes connections until `stop` turns true, then waits until the open ones have ended.
pub async fn serve_connections(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    router: Router,
    mut connection_limit: ConnectionLimit,
    mut shutdown: watch::Receiver<bool>,
) {
    let tls = tls.map(tokio_rustls::TlsAcceptor::from);
    // Every connection holds a sender; when the last one is gone, so is the last connection.
    let (open_token, mut all_closed) = mpsc::channel::<Infallible>(1);
    loop {
        let (socket, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            },
            _ = wait_for_shutdown(&mut shutdown) => break,
        };
        let Some(permit) = connection_limit.try_acquire() else {
            connection_limit.reject_connection(socket, tls.is_some());
            continue;
        };
        // Small events must not wait for more, and a stalled reader must not hide in the kernel's memory.
        let _ = socket.set_nodelay(true);
        let options = socket2::SockRef::from(&socket);
        let _ = options.set_send_buffer_size(limits::STREAM_SEND_BUFFER_BYTES);
        // A peer that lost its power closes nothing: without this its stream would pass for a live one for a quarter of an hour.
        let _ = options.set_tcp_user_timeout(Some(limits::REQUEST_DEADLINE));
        let connection = HttpConnection {
            peer,
            router: router.clone(),
            shutdown: shutdown.clone(),
            open_guard: (open_token.clone(), permit),
        };
        match tls.clone() {
            None => drop(tokio::spawn(connection.serve_socket(socket))),
            Some(tls) => drop(tokio::spawn(accept_tls(tls, socket, connection))),
        }
    }
    drop((listener, open_token));
    all_closed.recv().await;
}

/// Waits until the server is to stop; false when whoever would have told is gone.
async fn wait_for_shutdown(shutdown: &mut watch::Receiver<bool>) -> bool {
    shutdown.wait_for(|is_stopping| *is_stopping).await.is_ok()
}

/// Waits for the next word to a connection: first to finish (true), then, when whoever said so has stopped waiting, to break
/// off (false).
async fn wait_for_stop_signal(shutdown: &mut watch::Receiver<bool>, stopping: bool) -> bool {
    if !stopping {
        return wait_for_shutdown(shutdown).await;
    }
    while shutdown.changed().await.is_ok() {}
    false
}

async fn accept_tls(tls: tokio_rustls::TlsAcceptor, socket: TcpStream, connection: HttpConnection) {
    match timeout(HANDSHAKE_TIMEOUT, tls.accept(socket)).await {
        Ok(Ok(socket)) => connection.serve_socket(socket).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

/// One connection.
struct HttpConnection {
    peer: SocketAddr,
    router: Router,
    shutdown: watch::Receiver<bool>,
    /// Held for as long as the connection is open, as whatever it becomes.
    open_guard: (mpsc::Sender<Infallible>, OwnedSemaphorePermit),
}

/// What the handler and the connection's driver say to each other.
#[derive(Default)]
struct ConnectionShared {
    /// The head and the feed of the stream that takes this connection over.
    handoff: Mutex<Option<(Vec<u8>, StreamFeed)>>,
    /// The last write was not taken completely: an earlier answer is still on its way.
    is_write_pending: AtomicBool,
}

impl HttpConnection {
    async fn serve_socket<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, socket: S) {
        let HttpConnection {
            peer,
            router,
            mut shutdown,
            open_guard,
        } = self;
        let shared = Arc::<ConnectionShared>::default();
        let socket = TokioIo::new(WatchedSocket {
            socket,
            shared: shared.clone(),
            write_deadline: None,
        });
        let service = {
            let shared = shared.clone();
            hyper::service::service_fn(move |request| {
                handle_request(router.clone(), peer, shared.clone(), request)
            })
        };
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits::REQUEST_DEADLINE)
            .max_buf_size(limits::CONNECTION_BUFFER_BYTES)
            .serve_connection(socket, service);
        let mut stopping = false;
        let handoff = loop {
            tokio::select! {
                handoff = drive_until_handoff(&mut connection, &shared) => break handoff,
                in_order = wait_for_stop_signal(&mut shutdown, stopping) => {
                    stopping = true;
                    if !in_order {
                        return;
                    }
                    Pin::new(&mut connection).graceful_shutdown();
                }
            }
        };
        if let Some((head, feed)) = handoff {
            // The parser and its buffers go; what they had read beyond the request is of no use on a stream.
            let socket = connection.into_parts().io.into_inner().socket;
            tokio::spawn(async move {
                stream::write_feed(socket, head, feed).await;
                drop(open_guard);
            });
        }
    }
}

/// Runs the HTTP connection to its end, or until a stream is to take it over.
async fn drive_until_handoff<C: Future + Unpin>(
    connection: &mut C,
    shared: &ConnectionShared,
) -> Option<(Vec<u8>, StreamFeed)> {
    poll_fn(|cx| {
        if Pin::new(&mut *connection).poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        if shared.is_write_pending.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        match shared
            .handoff
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            Some(handoff) => Poll::Ready(Some(handoff)),
            None => Poll::Pending,
        }
    })
    .await
}

/// One request. A stream's answer never comes back to the HTTP server: the driver sees it and ends the HTTP here.
async fn handle_request(
    mut router: Router,
    peer: SocketAddr,
    shared: Arc<ConnectionShared>,
    mut request: Request<Incoming>,
) -> Result<Response, Infallible> {
    request.extensions_mut().insert(ConnectInfo(peer));
    let head_only = request.method() == Method::HEAD;
    let is_read_only = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    let request = request.map(crate::body::DrainingBody::wrap_incoming);
    // What may change something is on a task of its own: a client that hangs up after the commit must not leave what follows
    // from it undone, be it a cache that still knows the old key or a webhook that nobody posts.
    let mut response = if is_read_only {
        router.call(request).await?
    } else {
        match tokio::spawn(async move { router.call(request).await }).await {
            Ok(response) => response?,
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    };
    let feed = response
        .extensions_mut()
        .remove::<StreamHandoff>()
        .and_then(|takeover| takeover.take());
    match feed {
        Some(feed) if !head_only => {
            let head = stream::encode_response_head(&response.into_parts().0);
            *shared
                .handoff
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some((head, feed));
            pending().await
        }
        Some(_) | None => Ok(response),
    }
}

/// A socket that says whether it owes its peer bytes, and gives up on a peer that takes none for `limits::REQUEST_DEADLINE`.
struct WatchedSocket<S> {
    socket: S,
    shared: Arc<ConnectionShared>,
    write_deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> WatchedSocket<S> {
    fn track_write(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.shared
            .is_write_pending
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
