//! From a name to the addresses that a connection may use: looked up once, judged, and only then handed on (lesson 3).

use super::guard::{AddressBlocked, AddressGuard};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::{future::Future, io, pin::Pin, sync::Arc};
use tokio::sync::Semaphore;

pub type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Where names are looked up. Tests answer from a table.
pub trait NameResolver: Send + Sync {
    fn look_up_name(&self, name: &str) -> LookupFuture;
}

/// Look-ups that may wait for the machine's resolver at once. Each holds a thread, also after its request has given up, so that a
/// dead name server must not take every thread the process has. The next one waits inside its own deadline.
const MAX_LOOKUPS: usize = 32;
/// Addresses of one name that are tried; a name with thousands is somebody playing.
const MAX_ADDRESSES: usize = 16;

/// The machine's own resolver.
pub struct SystemResolver(Arc<Semaphore>);

impl Default for SystemResolver {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_LOOKUPS)))
    }
}

impl NameResolver for SystemResolver {
    fn look_up_name(&self, name: &str) -> LookupFuture {
        let (name, permits) = (name.to_owned(), self.0.clone());
        Box::pin(async move {
            let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
            let lookup = tokio::task::spawn_blocking(move || {
                let _held_until_the_thread_is_free = permit;
                (name.as_str(), 0)
                    .to_socket_addrs()
                    .map(|found| found.map(|a| a.ip()).collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}

/// The name has no address, or nobody could say so.
#[derive(Debug, thiserror::Error)]
#[error("the host name of the endpoint does not resolve")]
pub struct NameUnresolved;

/// The resolver of the HTTP client: the addresses it answers with are the ones that are connected to, so there is no second look-up
/// that could say something else. One bad address blocks the name: a set that mixes both is an attack, not a choice.
#[derive(Clone)]
pub struct GuardedResolver {
    pub resolver: Arc<dyn NameResolver>,
    pub guard: Arc<AddressGuard>,
}

impl GuardedResolver {
    pub async fn resolve_allowed(&self, name: &str) -> Result<Vec<IpAddr>, LookupError> {
        let found = self
            .resolver
            .look_up_name(name)
            .await
            .map_err(|_| LookupError::Unresolved(NameUnresolved))?;
        if !found.iter().all(|address| self.guard.is_allowed(*address)) {
            return Err(LookupError::Blocked(AddressBlocked));
        }
        if found.is_empty() {
            Err(LookupError::Unresolved(NameUnresolved))
        } else {
            Ok(found)
        }
    }
}

#[derive(Debug)]
pub enum LookupError {
    Unresolved(NameUnresolved),
    Blocked(AddressBlocked),
}

impl reqwest::dns::Resolve for GuardedResolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let guarded_resolver = self.clone();
        Box::pin(async move {
            match guarded_resolver.resolve_allowed(name.as_str()).await {
                // Port 0 stands for the URL's own.
                Ok(found) => {
                    let sockets = found
                        .into_iter()
                        .take(MAX_ADDRESSES)
                        .map(|address| SocketAddr::new(address, 0));
                    Ok(Box::new(sockets) as reqwest::dns::Addrs)
                }
                Err(LookupError::Unresolved(why)) => Err(why.into()),
                Err(LookupError::Blocked(why)) => Err(why.into()),
            }
        })
    }
}
