//! One HTTP/1.1 connection: serves its requests, hands the socket over to a stream, and ends on shutdown.

use super::client_presence::ClientPresence;
use super::connection_limit::ConnectionSlot;
use super::draining_body::DrainingBody;
use super::exchange_position::ExchangePosition;
use super::raw_refusal;
use super::request_service::RequestService;
use super::stream::{self, BodyFraming, OpenedStream, StreamHandoff};
use super::uninterrupted_write::UninterruptedWrite;
use super::watched_socket::WatchedSocket;
use axum::extract::ConnectInfo;
use axum::response::Response;
use chorus_hub::Clock;
use chorus_wire::limits;
use http::{Method, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};

/// Max time to write the refusal of a malformed request and let the client read it.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Paths whose requests may only wait for something: they end when their client leaves.
const TOOL_PATHS: &str = "/mcp";

/// One accepted connection.
pub struct HttpConnection {
    pub peer: SocketAddr,
    pub service: RequestService,
    pub clock: Clock,
    pub shutdown: watch::Receiver<bool>,
    /// It has to send its first request soon.
    pub is_unverified: bool,
    /// Held while the socket is open, also after a stream has taken it over.
    pub open_guard: (mpsc::Sender<Infallible>, ConnectionSlot),
}

/// State that the request handler shares with the driver of its connection.
#[derive(Default)]
struct ConnectionShared {
    /// The stream that takes this connection over.
    handoff: Mutex<Option<OpenedStream>>,
    /// An earlier response is still being written, so the handoff must wait.
    is_write_pending: Arc<AtomicBool>,
    position: Arc<ExchangePosition>,
}

impl HttpConnection {
    pub async fn serve_socket<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, socket: S) {
        let HttpConnection {
            peer,
            service,
            clock,
            mut shutdown,
            is_unverified,
            open_guard,
        } = self;
        let shared = Arc::<ConnectionShared>::default();
        let socket = TokioIo::new(WatchedSocket::new(
            socket,
            shared.is_write_pending.clone(),
            shared.position.clone(),
        ));
        let handle = {
            let shared = shared.clone();
            let place = open_guard.1.clone();
            hyper::service::service_fn(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(ConnectInfo(peer));
                request.extensions_mut().insert(place.clone());
                handle_request(service.clone(), shared.clone(), request)
            })
        };
        let head_timeout = match is_unverified {
            true => limits::UNVERIFIED_DEADLINE,
            false => limits::REQUEST_DEADLINE,
        };
        let mut connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head_timeout)
            .max_buf_size(limits::CONNECTION_BUFFER_BYTES)
            .serve_connection(socket, handle);
        let mut is_stopping = false;
        let end = loop {
            tokio::select! {
                end = drive_until_handoff(&mut connection, &shared) => break end,
                is_graceful = wait_for_stop_signal(&mut shutdown, is_stopping) => {
                    is_stopping = true;
                    if !is_graceful {
                        return;
                    }
                    Pin::new(&mut connection).graceful_shutdown();
                }
            }
        };
        let parts = connection.into_parts();
        let socket = parts.io.into_inner();
        match end {
            ConnectionEnd::Handoff(opened) => {
                // Bytes read beyond the request mean nothing on a stream.
                let socket = socket.into_socket();
                drop(parts.read_buf);
                tokio::spawn(stream::write_stream(socket, opened, open_guard));
            }
            ConnectionEnd::Closed(fault) => {
                let Some(status) = socket.parser_refusal() else {
                    return;
                };
                let error = raw_refusal::parser_error(status, fault.as_ref(), &parts.read_buf);
                let response = raw_refusal::encode_refusal(&error, clock.now());
                let mut socket = socket.into_socket();
                let writing = raw_refusal::write_refusal(&mut socket, &response);
                // A client that does not read its refusal is cut off.
                let _ = tokio::time::timeout(REFUSAL_TIMEOUT, writing).await;
            }
        }
    }
}

/// How the HTTP part of a connection ended.
enum ConnectionEnd {
    Closed(Option<hyper::Error>),
    /// A stream takes the socket over.
    Handoff(OpenedStream),
}

/// Runs the HTTP connection to its end, or until a stream takes it over.
async fn drive_until_handoff<C: Future<Output = hyper::Result<()>> + Unpin>(
    connection: &mut C,
    shared: &ConnectionShared,
) -> ConnectionEnd {
    poll_fn(|cx| {
        if let Poll::Ready(ended) = Pin::new(&mut *connection).poll(cx) {
            return Poll::Ready(ConnectionEnd::Closed(ended.err()));
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
            Some(opened) => Poll::Ready(ConnectionEnd::Handoff(opened)),
            None => Poll::Pending,
        }
    })
    .await
}

/// Answers one request. A stream never returns to hyper: the driver takes the handoff and leaves HTTP here.
async fn handle_request(
    service: RequestService,
    shared: Arc<ConnectionShared>,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let exchange = shared.position.begin_exchange();
    let head_only = request.method() == Method::HEAD;
    let version = request.version();
    let is_read_only = matches!(
        *request.method(),
        Method::GET | Method::HEAD | Method::OPTIONS
    );
    let mut request = request.map(DrainingBody::wrap_incoming);
    // When the client disconnects after the commit of a write, its consequences (cache invalidation, webhooks) must still
    // happen.
    let mut response = if is_read_only {
        service.answer_request(request).await
    } else {
        let _held_while_connected = request.uri().path().starts_with(TOOL_PATHS).then(|| {
            let (held, presence) = ClientPresence::begin();
            request.extensions_mut().insert(presence);
            held
        });
        UninterruptedWrite::new(async move { service.answer_request(request).await }).await
    };
    let feed = response
        .extensions_mut()
        .remove::<StreamHandoff>()
        .and_then(|handoff| handoff.take());
    match feed {
        Some(feed) if !head_only => {
            let framing = BodyFraming::for_version(version);
            let head = stream::encode_response_head(&response.into_parts().0, &framing);
            *shared
                .handoff
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(OpenedStream {
                head,
                framing,
                feed,
            });
            pending().await
        }
        Some(_) | None => Ok(response.map(|body| exchange.wrap_body(body))),
    }
}

/// Waits for the shutdown signal; false when its sender is gone.
pub async fn wait_for_shutdown(shutdown: &mut watch::Receiver<bool>) -> bool {
    shutdown.wait_for(|is_stopping| *is_stopping).await.is_ok()
}

/// Waits for the next signal to a connection: first to finish gracefully (true); later, when the server has stopped
/// waiting and dropped the sender, to break off (false).
async fn wait_for_stop_signal(shutdown: &mut watch::Receiver<bool>, is_stopping: bool) -> bool {
    if !is_stopping {
        return wait_for_shutdown(shutdown).await;
    }
    while shutdown.changed().await.is_ok() {}
    false
}
