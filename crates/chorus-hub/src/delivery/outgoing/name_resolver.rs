//! Resolves the host name of a webhook: one look-up, whose addresses are checked before the
//! connection uses them (lesson 3).

use super::address_guard::{AddressBlocked, AddressGuard};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::{future::Future, io, pin::Pin, sync::Arc};
use tokio::sync::Semaphore;

pub type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves host names. Tests answer from a table.
pub trait NameResolver: Send + Sync {
    fn look_up_name(&self, name: &str) -> LookupFuture;
}

/// Max concurrent look-ups with the machine's resolver. Each blocks a thread, even after its
/// request has timed out, so that without a limit a dead name server would take all threads of the
/// process. The next look-up waits within its own deadline.
const MAX_LOOKUPS: usize = 32;
/// Max addresses of one name that are tried; a name with thousands of addresses is abuse.
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
        let name = name.to_owned();
        let permits = self.0.clone();
        Box::pin(async move {
            let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
            let lookup = tokio::task::spawn_blocking(move || {
                let _held_until_the_thread_is_free = permit;
                (name.as_str(), 0)
                    .to_socket_addrs()
                    .map(|found| found.map(|address| address.ip()).collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}

/// The name has no address, or the look-up failed.
#[derive(Debug, thiserror::Error)]
#[error("the host name of the endpoint does not resolve")]
pub struct NameUnresolved;

/// The resolver of the HTTP client. The client connects to exactly the addresses that it returns,
/// so there is no second look-up with another answer (DNS rebinding). One blocked address blocks
/// the name, because a name with public and private addresses is an attack.
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
                // Port 0 stands for the port of the URL.
                Ok(found) => {
                    let sockets = found
                        .into_iter()
                        .take(MAX_ADDRESSES)
                        .map(|address| SocketAddr::new(address, 0));
                    Ok(Box::new(sockets) as reqwest::dns::Addrs)
                }
                Err(LookupError::Unresolved(error)) => Err(error.into()),
                Err(LookupError::Blocked(error)) => Err(error.into()),
            }
        })
    }
}
