//! From a name to the addresses that a connection may use: looked up once, judged, and only then handed on (lesson 3).

use super::guard::{Blocked, Guard};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::{future::Future, io, pin::Pin, sync::Arc};
use tokio::sync::Semaphore;

pub type LookingUp = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Where names are looked up. Tests answer from a table.
pub trait Names: Send + Sync {
    fn look_up(&self, name: &str) -> LookingUp;
}

/// Look-ups that may wait for the machine's resolver at once. Each holds a thread, also after its request has given up, so that a
/// dead name server must not take every thread the process has. The next one waits inside its own deadline.
const LOOKUPS: usize = 32;
/// Addresses of one name that are tried; a name with thousands is somebody playing.
const ADDRESSES: usize = 16;

/// The machine's own resolver.
pub struct MachineNames(Arc<Semaphore>);

impl Default for MachineNames {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LOOKUPS)))
    }
}

impl Names for MachineNames {
    fn look_up(&self, name: &str) -> LookingUp {
        let (name, turns) = (name.to_owned(), self.0.clone());
        Box::pin(async move {
            let turn = turns.acquire_owned().await.map_err(io::Error::other)?;
            let looked_up = tokio::task::spawn_blocking(move || {
                let _held_until_the_thread_is_free = turn;
                (name.as_str(), 0)
                    .to_socket_addrs()
                    .map(|found| found.map(|a| a.ip()).collect())
            });
            looked_up.await.map_err(io::Error::other)?
        })
    }
}

/// The name has no address, or nobody could say so.
#[derive(Debug, thiserror::Error)]
#[error("the host name of the endpoint does not resolve")]
pub struct Unresolved;

/// The resolver of the HTTP client: the addresses it answers with are the ones that are connected to, so there is no second look-up
/// that could say something else. One bad address blocks the name: a set that mixes both is an attack, not a choice.
#[derive(Clone)]
pub struct Judged {
    pub names: Arc<dyn Names>,
    pub guard: Arc<Guard>,
}

impl Judged {
    pub async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, LookUpError> {
        let found = self
            .names
            .look_up(name)
            .await
            .map_err(|_| LookUpError::Unresolved(Unresolved))?;
        if !found.iter().all(|address| self.guard.allows(*address)) {
            return Err(LookUpError::Blocked(Blocked));
        }
        if found.is_empty() {
            Err(LookUpError::Unresolved(Unresolved))
        } else {
            Ok(found)
        }
    }
}

#[derive(Debug)]
pub enum LookUpError {
    Unresolved(Unresolved),
    Blocked(Blocked),
}

impl reqwest::dns::Resolve for Judged {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let judged = self.clone();
        Box::pin(async move {
            match judged.addresses(name.as_str()).await {
                // Port 0 stands for the URL's own.
                Ok(found) => {
                    let sockets = found
                        .into_iter()
                        .take(ADDRESSES)
                        .map(|address| SocketAddr::new(address, 0));
                    Ok(Box::new(sockets) as reqwest::dns::Addrs)
                }
                Err(LookUpError::Unresolved(why)) => Err(why.into()),
                Err(LookUpError::Blocked(why)) => Err(why.into()),
            }
        })
    }
}
