//! Where a request comes from when somebody passes it on: the nearest address that is not a proxy we trust (D-92).

use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Addresses that begin alike: `10.0.0.0/8`, `2001:db8::/32`, or a single one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustedNetwork {
    /// An IPv4 address as the IPv6 address that stands for it.
    prefix: u128,
    prefix_bits: u32,
}

impl TrustedNetwork {
    pub fn contains(self, ip: IpAddr) -> bool {
        (to_ipv6_bits(ip) ^ self.prefix) & prefix_mask(self.prefix_bits) == 0
    }
}

fn to_ipv6_bits(ip: IpAddr) -> u128 {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

fn prefix_mask(prefix_bits: u32) -> u128 {
    u128::MAX.checked_shl(128 - prefix_bits).unwrap_or(0)
}

impl FromStr for TrustedNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text} is not an address or a network such as 10.0.0.0/8 or 2001:db8::/32");
        let (ip, length) = match text.trim().split_once('/') {
            Some((ip, length)) => (ip, Some(length)),
            None => (text.trim(), None),
        };
        let ip: IpAddr = ip.parse().map_err(|_| wrong())?;
        let max_length = if ip.is_ipv4() { 32 } else { 128 };
        let length: u32 = length
            .map_or(Ok(max_length), str::parse)
            .map_err(|_| wrong())?;
        if length > max_length {
            return Err(wrong());
        }
        if length == 0 {
            return Err(format!(
                "{text} is everybody: then anybody could say to be anybody"
            ));
        }
        let prefix_bits = 128 - max_length + length;
        Ok(Self {
            prefix: to_ipv6_bits(ip) & prefix_mask(prefix_bits),
            prefix_bits,
        })
    }
}

/// The proxies whose word is taken; nobody's by default.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<TrustedNetwork>);

impl TrustedProxies {
    pub fn new(trusted: &[TrustedNetwork]) -> Self {
        Self(trusted.to_vec())
    }

    fn is_trusted(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(ip))
    }

    /// Who a request is from. Of what is said only what a trusted proxy said itself counts, and that is what stands furthest
    /// to the right; what cannot be read is the peer's own.
    pub fn resolve_client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.is_trusted(peer) {
            return peer;
        }
        let found = (
            self.find_client_hop(headers, header::FORWARDED, parse_forwarded),
            self.find_client_hop(headers, X_FORWARDED_FOR, parse_x_forwarded_for),
        );
        match found {
            (ForwardedClient::Absent, ForwardedClient::Absent) => peer,
            (ForwardedClient::Address(ip), ForwardedClient::Absent)
            | (ForwardedClient::Absent, ForwardedClient::Address(ip)) => ip,
            // A proxy that writes one of them may pass on the other as a client wrote it, and which one that is cannot be told.
            (ForwardedClient::Address(ip), ForwardedClient::Address(other)) if ip == other => ip,
            (
                ForwardedClient::Address(_) | ForwardedClient::Absent | ForwardedClient::Malformed,
                ForwardedClient::Address(_) | ForwardedClient::Absent | ForwardedClient::Malformed,
            ) => peer,
        }
    }

    /// From the last hop to the first that is no trusted proxy; the first of all when every one is.
    fn find_client_hop(
        &self,
        headers: &HeaderMap,
        name: HeaderName,
        parse_hops: HopParser,
    ) -> ForwardedClient {
        let lines: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
        let mut client = ForwardedClient::Absent;
        for line in lines.into_iter().rev() {
            let Some(hops) = line.to_str().ok().and_then(parse_hops) else {
                return ForwardedClient::Malformed;
            };
            for hop in hops.into_iter().rev() {
                match hop.as_deref().and_then(parse_node) {
                    Some(ip) if self.is_trusted(ip) => client = ForwardedClient::Address(ip),
                    Some(ip) => return ForwardedClient::Address(ip),
                    None => return ForwardedClient::Malformed,
                }
            }
        }
        client
    }
}

/// What a header came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ForwardedClient {
    Absent,
    Address(IpAddr),
    Malformed,
}

/// The hops of one line, each as it is written or nothing where none can be made out; no hops when the line is broken.
type HopParser = fn(&str) -> Option<Vec<Option<String>>>;

/// `X-Forwarded-For`: addresses between commas.
fn parse_x_forwarded_for(line: &str) -> Option<Vec<Option<String>>> {
    Some(
        line.split(',')
            .map(|hop| Some(hop.trim().to_owned()))
            .collect(),
    )
}

/// `Forwarded` (RFC 7239): pairs between semicolons, hops between commas, and either may stand in quotes.
fn parse_forwarded(line: &str) -> Option<Vec<Option<String>>> {
    Some(
        split_unquoted(line, ',')?
            .into_iter()
            .map(parse_for_pair)
            .collect(),
    )
}

/// The one `for=` of a hop.
fn parse_for_pair(hop: &str) -> Option<String> {
    let mut found = None;
    for pair in split_unquoted(hop, ';')?
        .into_iter()
        .map(str::trim)
        .filter(|pair| !pair.is_empty())
    {
        let (name, value) = pair.split_once('=')?;
        if name.eq_ignore_ascii_case("for") && found.replace(unquote(value)?).is_some() {
            return None;
        }
    }
    found
}

/// Cuts at a sign where it is not in quotes; nothing when quotes stay open.
fn split_unquoted(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (index, symbol) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if quoted && symbol == '\\' {
            escaped = true;
        } else if symbol == '"' {
            quoted = !quoted;
        } else if symbol == separator && !quoted {
            parts.push(&text[start..index]);
            start = index + symbol.len_utf8();
        }
    }
    parts.push(&text[start..]);
    (!quoted).then_some(parts)
}

fn unquote(value: &str) -> Option<String> {
    let Some(inside) = value.strip_prefix('"') else {
        return Some(value.to_owned());
    };
    let mut text = String::new();
    let mut signs = inside.strip_suffix('"')?.chars();
    while let Some(symbol) = signs.next() {
        text.push(if symbol == '\\' {
            signs.next()?
        } else {
            symbol
        });
    }
    Some(text)
}

/// An address with or without a port. `unknown` and names that hide an address (`_proxy7`) are none.
fn parse_node(text: &str) -> Option<IpAddr> {
    if let Some(inside) = text.strip_prefix('[') {
        let (ip, rest) = inside.split_once(']')?;
        let is_valid_rest = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        return ip
            .parse::<Ipv6Addr>()
            .ok()
            .filter(|_| is_valid_rest)
            .map(|ip| IpAddr::V6(ip).to_canonical());
    }
    match text.split_once(':') {
        Some((ip, port)) if is_port(port) => ip.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        Some(_) | None => text.parse::<IpAddr>().ok().map(|ip| ip.to_canonical()),
    }
}

/// A number, or a name that hides one.
fn is_port(text: &str) -> bool {
    let digits = (1..=5).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let is_obfuscated_byte = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    digits
        || text
            .strip_prefix('_')
            .is_some_and(|name| !name.is_empty() && name.bytes().all(is_obfuscated_byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// Who a request is from, by these lines of headers, where 10.0.0.0/8 and 2001:db8:f::/48 are trusted.
    fn origin(peer: &str, lines: &[(&'static str, &str)]) -> String {
        let trusted = ["10.0.0.0/8", "2001:db8:f::/48"].map(|text| text.parse().unwrap());
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        TrustedProxies::new(&trusted)
            .resolve_client(ip(peer), &headers)
            .to_string()
    }

    #[test]
    fn a_network_is_its_first_bits_in_either_family() {
        let holds = |network: &str, address: &str| {
            network
                .parse::<TrustedNetwork>()
                .unwrap()
                .contains(ip(address))
        };
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.1.2", "11.0.0.1"),
            ("10.1.2.3/8", "::ffff:10.9.9.9", "::10.9.9.9"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("192.0.2.128/25", "192.0.2.255", "192.0.2.127"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("::1", "::1", "127.0.0.1"),
            ("0.0.0.0/1", "127.0.0.1", "::1"),
        ] {
            assert!(
                holds(network, inside) && !holds(network, outside),
                "{network}"
            );
        }
        for bad in [
            "",
            "10",
            "10.0.0.0/33",
            "2001:db8::/129",
            "10.0.0.0/-1",
            "10.0.0.0/8/8",
            "host",
            "0.0.0.0/0",
            "::/0",
        ] {
            assert!(bad.parse::<TrustedNetwork>().is_err(), "{bad}");
        }
    }

    // D-92
    #[test]
    fn nobody_else_is_listened_to() {
        for name in ["forwarded", "x-forwarded-for"] {
            assert_eq!(
                origin(
                    "192.0.2.1",
                    &[(name, "for=198.51.100.1"), (name, "198.51.100.1")]
                ),
                "192.0.2.1"
            );
        }
        let nobody = TrustedProxies::default();
        let headers =
            HeaderMap::from_iter([(X_FORWARDED_FOR, HeaderValue::from_static("198.51.100.1"))]);
        assert_eq!(
            nobody.resolve_client(ip("127.0.0.1"), &headers),
            ip("127.0.0.1")
        );
    }

    #[test]
    fn the_nearest_that_is_no_trusted_proxy_is_who_asks() {
        let list = |value: &str| origin("10.0.0.1", &[("x-forwarded-for", value)]);
        assert_eq!(list("198.51.100.1"), "198.51.100.1");
        assert_eq!(
            list("203.0.113.9, 198.51.100.1"),
            "198.51.100.1",
            "what a client wrote stands on the left"
        );
        assert_eq!(list("nonsense, 198.51.100.1, 10.2.2.2"), "198.51.100.1");
        assert_eq!(
            list("10.3.3.3,10.2.2.2"),
            "10.3.3.3",
            "a proxy may ask for itself"
        );
        assert_eq!(list("198.51.100.1:4711"), "198.51.100.1");
        assert_eq!(list("2001:db8:1::7"), "2001:db8:1::7");
        assert_eq!(
            list("[2001:db8:1::7]:443 , [2001:db8:f::2]"),
            "2001:db8:1::7"
        );
        assert_eq!(list("::ffff:198.51.100.1"), "198.51.100.1");
        let lines = [
            ("x-forwarded-for", "203.0.113.9"),
            ("x-forwarded-for", "198.51.100.1, 10.2.2.2"),
        ];
        assert_eq!(origin("::ffff:10.0.0.1", &lines), "198.51.100.1");
    }

    #[test]
    fn forwarded_is_read_as_its_standard_has_it() {
        let list = |value: &str| origin("2001:db8:f::1", &[("forwarded", value)]);
        assert_eq!(list("for=198.51.100.1"), "198.51.100.1");
        assert_eq!(
            list("proto=https;For=\"198.51.100.1:80\" ;by=10.0.0.1"),
            "198.51.100.1"
        );
        assert_eq!(
            list("for=198.51.100.1, for=\"[2001:db8:f::2]:_hidden\";by=x"),
            "198.51.100.1"
        );
        assert_eq!(
            list("for=\"[2001:db8:cafe::17]:4711\""),
            "2001:db8:cafe::17"
        );
        assert_eq!(list("for=\"\\[2001:db8:cafe::17\\]\""), "2001:db8:cafe::17");
        assert_eq!(
            list("for=203.0.113.9;host=\"a,b;c\", for=198.51.100.1;host=\"a,b;for=10.0.0.1\""),
            "198.51.100.1"
        );
    }

    #[test]
    fn what_cannot_be_read_is_the_peers_own() {
        for value in [
            "",
            "unknown",
            "_hidden",
            "198.51.100",
            "198.51.100.1:port",
            "[2001:db8::1",
            "fe80::1%eth0",
            "a, ",
        ] {
            assert_eq!(
                origin("10.0.0.1", &[("x-forwarded-for", value)]),
                "10.0.0.1",
                "{value:?}"
            );
        }
        for value in [
            "",
            "for",
            "for=",
            "for=unknown",
            "for=_hidden",
            "for=\"_hidden:80\"",
            "by=198.51.100.1",
            "for=198.51.100.1;for=203.0.113.9",
            "for=\"198.51.100.1",
            "for=\", for=198.51.100.1",
            "for=198.51.100.1, for=unknown",
            "for=\u{e9}",
        ] {
            assert_eq!(
                origin("10.0.0.1", &[("forwarded", value)]),
                "10.0.0.1",
                "{value:?}"
            );
        }
    }

    // D-92
    #[test]
    fn two_headers_that_differ_are_none() {
        let both = |one: &str, other: &str| {
            origin(
                "10.0.0.1",
                &[("forwarded", one), ("x-forwarded-for", other)],
            )
        };
        assert_eq!(both("for=198.51.100.1", "198.51.100.1"), "198.51.100.1");
        assert_eq!(both("for=203.0.113.9", "198.51.100.1"), "10.0.0.1");
        assert_eq!(both("for=unknown", "198.51.100.1"), "10.0.0.1");
    }
}
