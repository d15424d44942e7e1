//! Notifies systemd that the hub is ready or stopping: one datagram each to the socket in `NOTIFY_SOCKET`, if it is set.

use chorus_hub::{Hub, ops};
use std::ffi::OsStr;
use std::io;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";
/// The time between two readiness checks.
const READY_POLL: Duration = Duration::from_millis(200);

/// Notifies when `/ready` would succeed, so that a rolling restart waits for each hub. Then never returns.
pub async fn notify_when_ready(hub: &Hub) {
    if std::env::var_os(SOCKET_VARIABLE).is_some() {
        while ops::check_ready(hub).await.is_err() {
            tokio::time::sleep(READY_POLL).await;
        }
        notify_systemd("READY=1");
    }
    std::future::pending().await
}

pub fn notify_stopping() {
    notify_systemd("STOPPING=1");
}

fn notify_systemd(message: &str) {
    let Some(socket) = std::env::var_os(SOCKET_VARIABLE) else {
        return;
    };
    if let Err(error) = send_datagram(&socket, message) {
        tracing::warn!(%error, "systemd could not be notified of {message}");
    }
}

fn send_datagram(socket: &OsStr, message: &str) -> io::Result<()> {
    UnixDatagram::unbound()?
        .send_to_addr(message.as_bytes(), &socket_address(socket)?)
        .map(drop)
}

/// A leading `@` marks an abstract socket name, which only Linux has.
fn socket_address(socket: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let [b'@', name @ ..] = socket.as_bytes() {
        return <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name);
    }
    SocketAddr::from_pathname(socket)
}
