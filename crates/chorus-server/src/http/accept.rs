//! The accept loop: takes TCP connections within the connection limit until the server stops, then waits for them to end.

use super::connection::{HttpConnection, wait_for_shutdown};
use super::connection_limit::ConnectionLimit;
use super::request_service::RequestService;
use super::tls::ACME_TLS_ALPN;
use chorus_wire::limits;
use rustls::ServerConfig;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// Max duration of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept, which usually means that the system is out of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Accepts connections until `shutdown` turns true, then waits until the open ones have ended.
pub async fn serve_connections(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    service: RequestService,
    mut connection_limit: ConnectionLimit,
    mut shutdown: watch::Receiver<bool>,
) {
    let tls = tls.map(tokio_rustls::TlsAcceptor::from);
    // Every connection holds a sender; the channel closes when the last connection has ended.
    let (open_token, mut all_closed) = mpsc::channel::<Infallible>(1);
    loop {
        let (socket, peer) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            },
            _ = wait_for_shutdown(&mut shutdown) => break,
        };
        let slot = match connection_limit.try_acquire(peer.ip()) {
            Ok(slot) => slot,
            Err(refusal) => {
                connection_limit.reject_connection(socket, refusal, tls.is_some());
                continue;
            }
        };
        // No Nagle delay for small events. A small send buffer shows a stalled reader, which a large one would hide.
        let _ = socket.set_nodelay(true);
        let options = socket2::SockRef::from(&socket);
        let _ = options.set_send_buffer_size(limits::STREAM_SEND_BUFFER_BYTES);
        // A peer that lost power closes nothing: without this timeout its stream would count as live for 15 minutes.
        let _ = options.set_tcp_user_timeout(Some(limits::REQUEST_DEADLINE));
        let connection = HttpConnection {
            peer,
            service: service.clone(),
            clock: connection_limit.clock(),
            shutdown: shutdown.clone(),
            is_unverified: slot.is_unverified(),
            open_guard: (open_token.clone(), slot),
        };
        match tls.clone() {
            None => drop(tokio::spawn(connection.serve_socket(socket))),
            Some(tls) => drop(tokio::spawn(accept_tls(tls, socket, connection))),
        }
    }
    drop((listener, open_token));
    all_closed.recv().await;
}

async fn accept_tls(tls: tokio_rustls::TlsAcceptor, socket: TcpStream, connection: HttpConnection) {
    let handshake_timeout = match connection.is_unverified {
        true => limits::UNVERIFIED_DEADLINE,
        false => HANDSHAKE_TIMEOUT,
    };
    match timeout(handshake_timeout, tls.accept(socket)).await {
        // The handshake was all that the authority wanted to see (RFC 8737): no request may follow.
        Ok(Ok(mut socket)) if is_acme_check(&socket) => drop(socket.shutdown().await),
        Ok(Ok(socket)) => connection.serve_socket(socket).await,
        Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => tracing::debug!("a TLS handshake took too long"),
    }
}

fn is_acme_check(socket: &tokio_rustls::server::TlsStream<TcpStream>) -> bool {
    socket.get_ref().1.alpn_protocol() == Some(ACME_TLS_ALPN)
}
