//! Resolves names by the hosts file and DNS without blocking a thread, with a cache and a share of
//! the look-ups for each owner (R-99, D-102).

use super::capacity_shares::{DeliveryOwner, ShareTable};
use super::name_resolver::{LookupFuture, MAX_ADDRESSES, NameResolver};
use crate::limits;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{TokioResolver, system_conf};
use quick_cache::sync::Cache;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use std::{fs, io};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

/// The files that configure the machine's resolver. They are looked at again while the hub runs,
/// because a laptop changes networks and a container gets other name servers.
const CONFIGURATION_FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];
/// Reading the times of two files costs microseconds; a new network is noticed before a person has tried again.
const CONFIGURATION_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Two tries fit into one look-up, so that a lost packet is no failure.
const TRY_TIMEOUT: Duration = Duration::from_millis(900);

/// The resolver of a hub. Cheap to clone.
#[derive(Clone)]
pub struct DnsResolver(Arc<DnsResolverInner>);

struct DnsResolverInner {
    /// Asked instead of those of the machine.
    name_servers: Vec<SocketAddr>,
    configured: Mutex<Option<ConfiguredResolver>>,
    cache: Cache<String, CachedName>,
    lookups: Semaphore,
    owner_lookups: ShareTable<DeliveryOwner>,
}

/// A resolver and the state of the files that it was configured from.
struct ConfiguredResolver {
    resolver: TokioResolver,
    changed_at: [Option<SystemTime>; CONFIGURATION_FILES.len()],
    checked_at: Instant,
}

/// The outcome of a look-up; `None` for a name without an address.
#[derive(Clone)]
struct CachedName {
    addresses: Option<Arc<[IpAddr]>>,
    valid_until: Instant,
}

impl CachedName {
    fn to_result(&self) -> io::Result<Vec<IpAddr>> {
        match &self.addresses {
            Some(addresses) => Ok(addresses.to_vec()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl DnsResolver {
    /// Asks `name_servers`, or those of the machine if there are none.
    pub fn new(name_servers: Vec<SocketAddr>) -> Self {
        Self(Arc::new(DnsResolverInner {
            name_servers,
            configured: Mutex::default(),
            cache: Cache::new(limits::RESOLVED_NAMES_CACHED),
            lookups: Semaphore::new(limits::NAME_LOOKUPS_AT_ONCE),
            owner_lookups: ShareTable::new(limits::NAME_LOOKUPS_PER_OWNER),
        }))
    }
}

impl NameResolver for DnsResolver {
    fn look_up_name(&self, name: &str, owner: DeliveryOwner) -> LookupFuture {
        let inner = self.0.clone();
        let name = name.to_owned();
        Box::pin(async move { inner.look_up(&name, owner).await })
    }
}

impl DnsResolverInner {
    async fn look_up(&self, name: &str, owner: DeliveryOwner) -> io::Result<Vec<IpAddr>> {
        let resolver = self.current_resolver()?;
        if let Some(cached) = self.find_cached(name) {
            return cached.to_result();
        }
        // The owner's share first: a look-up that waits for it must not hold one of all.
        let _owner_permit = self.owner_lookups.acquire(owner).await;
        let _permit = self.lookups.acquire().await.map_err(io::Error::other)?;
        // Another look-up of this name may have ended meanwhile.
        if let Some(cached) = self.find_cached(name) {
            return cached.to_result();
        }
        let found = timeout(limits::NAME_LOOKUP_TIMEOUT, resolver.lookup_ip(name)).await;
        let now = Instant::now();
        let cached = match found {
            Ok(Ok(found)) => CachedName {
                addresses: Some(found.iter().take(MAX_ADDRESSES).collect()),
                valid_until: Instant::from_std(found.valid_until()).clamp(
                    now + limits::NAME_CACHED_AT_LEAST,
                    now + limits::NAME_CACHED_AT_MOST,
                ),
            },
            // Also a name server that does not answer: otherwise each message to the name would
            // occupy a look-up for the whole time.
            Ok(Err(_)) | Err(_) => CachedName {
                addresses: None,
                valid_until: now + limits::NAME_CACHED_AT_LEAST,
            },
        };
        self.cache.insert(name.to_owned(), cached.clone());
        cached.to_result()
    }

    fn find_cached(&self, name: &str) -> Option<CachedName> {
        let cached = self.cache.get(name)?;
        (Instant::now() < cached.valid_until).then_some(cached)
    }

    /// The resolver by the current configuration of the machine.
    fn current_resolver(&self) -> io::Result<TokioResolver> {
        let mut configured = self
            .configured
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(known) = &mut *configured {
            if now < known.checked_at + CONFIGURATION_CHECK_INTERVAL {
                return Ok(known.resolver.clone());
            }
            known.checked_at = now;
            if known.changed_at == configuration_changed_at() {
                return Ok(known.resolver.clone());
            }
            self.cache.clear();
        }
        let changed_at = configuration_changed_at();
        let resolver = build_resolver(&self.name_servers)?;
        *configured = Some(ConfiguredResolver {
            resolver: resolver.clone(),
            changed_at,
            checked_at: now,
        });
        Ok(resolver)
    }
}

fn configuration_changed_at() -> [Option<SystemTime>; CONFIGURATION_FILES.len()] {
    CONFIGURATION_FILES.map(|path| fs::metadata(path).and_then(|file| file.modified()).ok())
}

fn build_resolver(name_servers: &[SocketAddr]) -> io::Result<TokioResolver> {
    let (config, mut options) = if name_servers.is_empty() {
        system_conf::read_system_conf().unwrap_or_else(|cause| {
            // As the C library does: the hosts file still answers, and perhaps a local server.
            tracing::warn!(%cause, "no name server is configured on this machine");
            let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 53));
            (config_for_servers(&[local]), ResolverOpts::default())
        })
    } else {
        (config_for_servers(name_servers), ResolverOpts::default())
    };
    options.timeout = TRY_TIMEOUT;
    options.attempts = 1;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    // The cache here also holds failures, and answers without one of the permits.
    options.cache_size = 0;
    options.max_active_requests = 2 * limits::NAME_LOOKUPS_AT_ONCE;
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        .with_options(options)
        .build()
        .map_err(io::Error::other)
}

fn config_for_servers(name_servers: &[SocketAddr]) -> ResolverConfig {
    let servers = name_servers.iter().map(|address| {
        let mut connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
        for connection in &mut connections {
            connection.port = address.port();
        }
        NameServerConfig::new(address.ip(), true, connections.to_vec())
    });
    ResolverConfig::from_name_servers(servers.collect())
}
