//! A TCP load balancer before several hubs: each new connection goes to the next hub that accepts it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

/// Small, so that a reader that stops reading blocks the hub behind it as it would without the front.
const BUFFER: u32 = 16 * 1024;

pub struct Front {
    pub addr: SocketAddr,
    backs: Arc<Mutex<Vec<SocketAddr>>>,
    accepting: JoinHandle<()>,
}

impl Drop for Front {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Front {
    pub async fn before(backs: Vec<SocketAddr>) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(BUFFER).unwrap();
        socket.set_send_buffer_size(BUFFER).unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(1024).unwrap();
        let addr = listener.local_addr().unwrap();
        let backs = Arc::new(Mutex::new(backs));
        let accepting = tokio::spawn(accept(listener, backs.clone()));
        Self {
            addr,
            backs,
            accepting,
        }
    }

    /// Replaces the hubs behind the front.
    pub fn turn_to(&self, backs: Vec<SocketAddr>) {
        *self.backs.lock().unwrap() = backs;
    }
}

async fn accept(listener: TcpListener, backs: Arc<Mutex<Vec<SocketAddr>>>) {
    for turn in 0.. {
        let Ok((outside, _)) = listener.accept().await else {
            continue;
        };
        let mut order = backs.lock().unwrap().clone();
        let first = turn % order.len().max(1);
        order.rotate_left(first);
        tokio::spawn(pass_on(outside, order));
    }
}

async fn pass_on(outside: TcpStream, order: Vec<SocketAddr>) {
    for back in order {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(BUFFER).unwrap();
        let Ok(inside) = socket.connect(back).await else {
            continue;
        };
        let _ = (outside.set_nodelay(true), inside.set_nodelay(true));
        let ((from_outside, to_outside), (from_inside, to_inside)) =
            (outside.into_split(), inside.into_split());
        tokio::join!(pump(from_outside, to_inside), pump(from_inside, to_outside));
        return;
    }
}

/// Copies until one side ends, then closes the other.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let mut buffer = vec![0; BUFFER as usize];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}
