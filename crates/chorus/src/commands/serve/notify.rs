//! What systemd is told of a hub that it started: that it is ready, and that it stops. One datagram each, to the socket that
//! `NOTIFY_SOCKET` names; without it nobody asked.

use chorus_hub::{Hub, ops};
use std::ffi::OsStr;
use std::io;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";
/// How soon a hub that was not ready is asked again.
const READY_POLL: Duration = Duration::from_millis(200);

/// Tells it when `/ready` would say so, so that a restart of several hubs, one by one, waits for each. Then waits for ever.
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

fn notify_systemd(word: &str) {
    let Some(socket) = std::env::var_os(SOCKET_VARIABLE) else {
        return;
    };
    if let Err(error) = send_datagram(&socket, word) {
        tracing::warn!(%error, "systemd could not be told {word}");
    }
}

fn send_datagram(socket: &OsStr, word: &str) -> io::Result<()> {
    UnixDatagram::unbound()?
        .send_to_addr(word.as_bytes(), &socket_address(socket)?)
        .map(drop)
}

/// An `@` in front stands for the byte 0 of a name that is in no directory, which only Linux has.
fn socket_address(socket: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let [b'@', name @ ..] = socket.as_bytes() {
        return <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name);
    }
    SocketAddr::from_pathname(socket)
}
