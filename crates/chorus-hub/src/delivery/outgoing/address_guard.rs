//! The SSRF guard: a webhook may only go to public addresses, never into the hub's own network
//! (lesson 3).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use url::{Host, Url};

/// The destination was refused. The text names neither the address nor the URL, because the sender
/// must not learn what a name resolves to in the hub's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the endpoint is on a private, loopback or otherwise unreachable address")]
pub struct AddressBlocked;

/// Decides which addresses and which hosts of URLs are allowed.
#[derive(Clone, Debug, Default)]
pub struct AddressGuard {
    pub allow_private: bool,
    /// Allowed whatever their range, for single internal hosts that the operator trusts.
    pub allowed_addresses: Vec<IpAddr>,
    pub own_host: OwnHost,
}

/// The machine that the hub runs on, as a destination. A post to its own public address never passes its firewall, so only the
/// hub itself may be reached there, at its public URL: it hosts agents by connection strings.
#[derive(Clone, Debug)]
pub struct OwnHost {
    pub public_url: Option<Url>,
    pub is_own_address: fn(IpAddr) -> bool,
}

impl Default for OwnHost {
    fn default() -> Self {
        Self {
            public_url: None,
            is_own_address: is_local_address,
        }
    }
}

/// Only an address of this machine can be bound.
fn is_local_address(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

impl OwnHost {
    /// Whether the host of the public URL has this name.
    pub fn has_name(&self, name: &str) -> bool {
        let own_name = self.public_url.as_ref().and_then(Url::domain);
        own_name.is_some_and(|own_name| own_name.eq_ignore_ascii_case(name))
    }

    fn is_public_origin(&self, url: &Url) -> bool {
        self.public_url
            .as_ref()
            .is_some_and(|own_url| own_url.origin() == url.origin())
    }
}

/// The decision about a URL's host before any name is resolved.
#[derive(Debug, PartialEq, Eq)]
pub enum CheckedHost {
    /// A literal address that is allowed.
    Literal(IpAddr),
    /// A name to be resolved; its addresses decide.
    Name(String),
}

impl AddressGuard {
    pub fn is_allowed(&self, address: IpAddr) -> bool {
        // An IPv4-mapped IPv6 address reaches the IPv4 host, so the IPv4 address is checked.
        let address = address.to_canonical();
        self.is_allowed_range(address) && !self.is_guarded_own(address)
    }

    /// The same for an address that this name resolved to.
    pub fn is_allowed_for(&self, name: &str, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.is_allowed_range(address)
            && (self.own_host.has_name(name) || !self.is_guarded_own(address))
    }

    fn is_allowed_range(&self, address: IpAddr) -> bool {
        self.allow_private || self.allowed_addresses.contains(&address) || is_public(address)
    }

    fn is_guarded_own(&self, address: IpAddr) -> bool {
        !self.allow_private
            && !self.allowed_addresses.contains(&address)
            && (self.own_host.is_own_address)(address)
    }

    /// Checks the host of a URL. The URL parser has already turned decimal, octal, hex and
    /// full-width spellings of an address into the address itself.
    pub fn check_url(&self, url: &Url) -> Result<CheckedHost, AddressBlocked> {
        let literal = match url.host() {
            None => return Err(AddressBlocked),
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(name)) if is_localhost(name) && !self.allow_private => {
                return Err(AddressBlocked);
            }
            // Another port of the hub's own host is another service.
            Some(Host::Domain(name))
                if !self.allow_private
                    && self.own_host.has_name(name)
                    && !self.own_host.is_public_origin(url) =>
            {
                return Err(AddressBlocked);
            }
            Some(Host::Domain(name)) => return Ok(CheckedHost::Name(name.to_owned())),
        };
        let is_hub =
            self.own_host.is_public_origin(url) && self.is_allowed_range(literal.to_canonical());
        if is_hub || self.is_allowed(literal) {
            Ok(CheckedHost::Literal(literal))
        } else {
            Err(AddressBlocked)
        }
    }
}

/// RFC 6761: these names mean this machine, whatever a resolver answers.
fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !NOT_PUBLIC_V4
            .iter()
            .any(|(net, bits)| is_inside_v4(address, *net, *bits)),
        IpAddr::V6(address) => {
            let (net, bits) = UNICAST_V6;
            is_inside_v6(address, net, bits)
                && !NOT_PUBLIC_V6
                    .iter()
                    .any(|(net, bits)| is_inside_v6(address, *net, *bits))
        }
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8) -> Ipv4Addr {
    Ipv4Addr::new(a, b, c, d)
}

/// The special-purpose registry of IPv4, and ranges that contain no hosts.
const NOT_PUBLIC_V4: [(Ipv4Addr, u32); 16] = [
    (v4(0, 0, 0, 0), 8),       // this network: on Linux 0.0.0.0 is loopback
    (v4(10, 0, 0, 0), 8),      // private
    (v4(100, 64, 0, 0), 10),   // carrier NAT, and the internal network of some clouds
    (v4(127, 0, 0, 0), 8),     // loopback
    (v4(169, 254, 0, 0), 16),  // link-local, where clouds serve credentials
    (v4(172, 16, 0, 0), 12),   // private
    (v4(192, 0, 0, 0), 24),    // protocol assignments
    (v4(192, 0, 2, 0), 24),    // documentation
    (v4(192, 88, 99, 0), 24),  // 6to4 relays
    (v4(192, 168, 0, 0), 16),  // private
    (v4(198, 18, 0, 0), 15),   // benchmarking
    (v4(198, 51, 100, 0), 24), // documentation
    (v4(203, 0, 113, 0), 24),  // documentation
    (v4(224, 0, 0, 0), 4),     // multicast
    (v4(240, 0, 0, 0), 4),     // reserved
    (v4(255, 255, 255, 255), 32),
];

/// The block of public IPv6 unicast addresses. Everything outside it (`::`, loopback,
/// IPv4-compatible, NAT64, discard-only, unique local, link-local, site-local, multicast and
/// reserved ranges) is refused without being listed.
const UNICAST_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Ranges inside the public block that are not public, or tunnel to an IPv4 address that is not
/// checked.
const NOT_PUBLIC_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23), // protocol assignments, including Teredo
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16), // 6to4
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20), // documentation
];

fn is_inside_v4(address: Ipv4Addr, net: Ipv4Addr, bits: u32) -> bool {
    (address.to_bits() ^ net.to_bits()) >> (32 - bits) == 0
}

fn is_inside_v6(address: Ipv6Addr, net: Ipv6Addr, bits: u32) -> bool {
    (address.to_bits() ^ net.to_bits()) >> (128 - bits) == 0
}
