//! What systemd is told of a hub that it started: that it is ready, and that it stops. One datagram each, to the socket that
//! `NOTIFY_SOCKET` names; without it nobody asked.

use chorus_hub::{Hub, ops};
use std::ffi::OsStr;
use std::io;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

const SOCKET: &str = "NOTIFY_SOCKET";
/// How soon a hub that was not ready is asked again.
const AGAIN: Duration = Duration::from_millis(200);

/// Tells it when `/ready` would say so, so that a restart of several hubs, one by one, waits for each. Then waits for ever.
pub async fn when_ready(hub: &Hub) {
    if std::env::var_os(SOCKET).is_some() {
        while ops::ready(hub).await.is_err() {
            tokio::time::sleep(AGAIN).await;
        }
        tell("READY=1");
    }
    std::future::pending().await
}

pub fn stopping() {
    tell("STOPPING=1");
}

fn tell(word: &str) {
    let Some(socket) = std::env::var_os(SOCKET) else {
        return;
    };
    if let Err(error) = send(&socket, word) {
        tracing::warn!(%error, "systemd could not be told {word}");
    }
}

fn send(socket: &OsStr, word: &str) -> io::Result<()> {
    UnixDatagram::unbound()?
        .send_to_addr(word.as_bytes(), &address(socket)?)
        .map(drop)
}

/// An `@` in front stands for the byte 0 of a name that is in no directory, which only Linux has.
fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let [b'@', name @ ..] = socket.as_bytes() {
        return <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name);
    }
    SocketAddr::from_pathname(socket)
}
