//! The connection loop: takes connections, serves HTTP/1.1 on them, hands streams over, and ends them when the server stops.

use crate::stream::{self, Takeover};
use crate::turned_away::Door;
use axum::response::{IntoResponse, Response};
use axum::{Router, extract::ConnectInfo};
use chorus_hub::delivery::Feed;
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
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long to wait when the system has no more sockets to give.
const OUT_OF_SOCKETS: Duration = Duration::from_millis(100);

/// Takes connections until `stop` turns true, then waits until the open ones have ended.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    router: Router,
    mut door: Door,
    mut stop: watch::Receiver<bool>,
) {
    let tls = tls.map(tokio_rustls::TlsAcceptor::from);
    // Every connection holds a sender; when the last one is gone, so is the last connection.
    let (open, mut ended) = mpsc::channel::<Infallible>(1);
    loop {
        let (socket, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be taken");
                    tokio::time::sleep(OUT_OF_SOCKETS).await;
                    continue;
                }
            },
            _ = told(&mut stop) => break,
        };
        let Some(place) = door.enter() else {
            door.turn_away(socket, tls.is_some());
            continue;
        };
        // Small events must not wait for more, and a stalled reader must not hide in the kernel's memory.
        let _ = socket.set_nodelay(true);
        let options = socket2::SockRef::from(&socket);
        let _ = options.set_send_buffer_size(limits::STREAM_SEND_BUFFER);
        // A peer that lost its power closes nothing: without this its stream would pass for a live one for a quarter of an hour.
        let _ = options.set_tcp_user_timeout(Some(limits::REQUEST_DEADLINE));
        let visit = Visit {
            peer,
            router: router.clone(),
            stop: stop.clone(),
            open: (open.clone(), place),
        };
        match tls.clone() {
            None => drop(tokio::spawn(visit.serve(socket))),
            Some(tls) => drop(tokio::spawn(handshake(tls, socket, visit))),
        }
    }
    drop((listener, open));
    ended.recv().await;
}

/// Waits until the server is to stop; false when whoever would have told is gone.
async fn told(stop: &mut watch::Receiver<bool>) -> bool {
    stop.wait_for(|stop| *stop).await.is_ok()
}

/// Waits for the next word to a connection: first to finish (true), then, when whoever said so has stopped waiting, to break
/// off (false).
async fn word(stop: &mut watch::Receiver<bool>, stopping: bool) -> bool {
    if !stopping {
        return told(stop).await;
    }
    while stop.changed().await.is_ok() {}
    false
}

async fn handshake(tls: tokio_rustls::TlsAcceptor, socket: TcpStream, visit: Visit) {
    match timeout(HANDSHAKE, tls.accept(socket)).await {
        Ok(Ok(socket)) => visit.serve(socket).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

/// One connection.
struct Visit {
    peer: SocketAddr,
    router: Router,
    stop: watch::Receiver<bool>,
    /// Held for as long as the connection is open, as whatever it becomes.
    open: (mpsc::Sender<Infallible>, OwnedSemaphorePermit),
}

/// What the handler and the connection's driver say to each other.
#[derive(Default)]
struct Between {
    /// The head and the feed of the stream that takes this connection over.
    taken: Mutex<Option<(Vec<u8>, Feed)>>,
    /// The last write was not taken completely: an earlier answer is still on its way.
    unwritten: AtomicBool,
}

impl Visit {
    async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, socket: S) {
        let Visit {
            peer,
            router,
            mut stop,
            open,
        } = self;
        let between = Arc::<Between>::default();
        let socket = TokioIo::new(Watched {
            socket,
            between: between.clone(),
            overdue: None,
        });
        let service = {
            let between = between.clone();
            hyper::service::service_fn(move |request| {
                answer(router.clone(), peer, between.clone(), request)
            })
        };
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits::REQUEST_DEADLINE)
            .max_buf_size(limits::CONNECTION_BUFFER_BYTES)
            .serve_connection(socket, service);
        let mut stopping = false;
        let taken = loop {
            tokio::select! {
                taken = drive(&mut connection, &between) => break taken,
                in_order = word(&mut stop, stopping) => {
                    stopping = true;
                    if !in_order {
                        return;
                    }
                    Pin::new(&mut connection).graceful_shutdown();
                }
            }
        };
        if let Some((head, feed)) = taken {
            // The parser and its buffers go; what they had read beyond the request is of no use on a stream.
            let socket = connection.into_parts().io.into_inner().socket;
            tokio::spawn(async move {
                stream::run(socket, head, feed).await;
                drop(open);
            });
        }
    }
}

/// Runs the HTTP connection to its end, or until a stream is to take it over.
async fn drive<C: Future + Unpin>(
    connection: &mut C,
    between: &Between,
) -> Option<(Vec<u8>, Feed)> {
    poll_fn(|cx| {
        if Pin::new(&mut *connection).poll(cx).is_ready() {
            return Poll::Ready(None);
        }
        if between.unwritten.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        match between
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            Some(taken) => Poll::Ready(Some(taken)),
            None => Poll::Pending,
        }
    })
    .await
}

/// One request. A stream's answer never comes back to the HTTP server: the driver sees it and ends the HTTP here.
async fn answer(
    mut router: Router,
    peer: SocketAddr,
    between: Arc<Between>,
    mut request: Request<Incoming>,
) -> Result<Response, Infallible> {
    request.extensions_mut().insert(ConnectInfo(peer));
    let head_only = request.method() == Method::HEAD;
    let reads = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    let request = request.map(crate::body::Incoming::of);
    // What may change something is on a task of its own: a client that hangs up after the commit must not leave what follows
    // from it undone, be it a cache that still knows the old key or a webhook that nobody posts.
    let mut response = if reads {
        router.call(request).await?
    } else {
        match tokio::spawn(async move { router.call(request).await }).await {
            Ok(response) => response?,
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    };
    let takeover = response
        .extensions_mut()
        .remove::<Takeover>()
        .and_then(|takeover| takeover.take());
    match takeover {
        Some(feed) if !head_only => {
            let head = stream::head(&response.into_parts().0);
            *between.taken.lock().unwrap_or_else(PoisonError::into_inner) = Some((head, feed));
            pending().await
        }
        Some(_) | None => Ok(response),
    }
}

/// A socket that says whether it owes its peer bytes, and gives up on a peer that takes none for `limits::REQUEST_DEADLINE`.
struct Watched<S> {
    socket: S,
    between: Arc<Between>,
    overdue: Option<Pin<Box<Sleep>>>,
}

impl<S> Watched<S> {
    fn wrote(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.between
            .unwritten
            .store(written.is_pending(), Ordering::Relaxed);
        if written.is_ready() {
            self.overdue = None;
            return written;
        }
        let overdue = self.overdue.get_or_insert_with(|| {
            Box::pin(tokio::time::sleep_until(
                Instant::now() + limits::REQUEST_DEADLINE,
            ))
        });
        ready!(overdue.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, bytes);
        self.wrote(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, bytes);
        self.wrote(cx, written)
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
