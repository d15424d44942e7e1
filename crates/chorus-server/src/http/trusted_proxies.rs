//! Finds the client of a forwarded request: the nearest hop that is not a trusted proxy (D-92).

use super::forwarded_header::{HopParser, parse_forwarded, parse_node, parse_x_forwarded_for};
use super::trusted_network::TrustedNetwork;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::net::IpAddr;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The proxies whose forwarding headers are trusted; none by default.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<TrustedNetwork>);

impl TrustedProxies {
    pub fn new(trusted: &[TrustedNetwork]) -> Self {
        Self(trusted.to_vec())
    }

    pub fn is_trusted(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(ip))
    }

    /// The client's address. Only hops that a trusted proxy added count, and those are the rightmost. When a header is
    /// malformed, the peer counts as the client.
    pub fn resolve_client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.is_trusted(peer) {
            return peer;
        }
        let standard = self.find_client_hop(headers, header::FORWARDED, parse_forwarded);
        let common = self.find_client_hop(headers, X_FORWARDED_FOR, parse_x_forwarded_for);
        match (standard, common) {
            (ForwardedClient::Absent, ForwardedClient::Absent) => peer,
            (ForwardedClient::Address(ip), ForwardedClient::Absent)
            | (ForwardedClient::Absent, ForwardedClient::Address(ip)) => ip,
            // A proxy that writes one header may pass on the other as the client wrote it, so two that differ are not trusted.
            (ForwardedClient::Address(ip), ForwardedClient::Address(other)) if ip == other => ip,
            (
                ForwardedClient::Address(_) | ForwardedClient::Absent | ForwardedClient::Malformed,
                ForwardedClient::Address(_) | ForwardedClient::Absent | ForwardedClient::Malformed,
            ) => peer,
        }
    }

    /// Walks from the last hop to the first that is not a trusted proxy; the leftmost hop when all are trusted.
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

/// The client according to one header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ForwardedClient {
    Absent,
    Address(IpAddr),
    Malformed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// The client of a request with these header lines, where 10.0.0.0/8 and 2001:db8:f::/48 are trusted.
    fn resolve(peer: &str, lines: &[(&'static str, &str)]) -> String {
        let trusted = ["10.0.0.0/8", "2001:db8:f::/48"].map(|text| text.parse().unwrap());
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        TrustedProxies::new(&trusted)
            .resolve_client(ip(peer), &headers)
            .to_string()
    }

    // D-92
    #[test]
    fn headers_of_an_untrusted_peer_are_ignored() {
        for name in ["forwarded", "x-forwarded-for"] {
            assert_eq!(
                resolve(
                    "192.0.2.1",
                    &[(name, "for=198.51.100.1"), (name, "198.51.100.1")]
                ),
                "192.0.2.1"
            );
        }
        let no_proxies = TrustedProxies::default();
        let headers =
            HeaderMap::from_iter([(X_FORWARDED_FOR, HeaderValue::from_static("198.51.100.1"))]);
        assert_eq!(
            no_proxies.resolve_client(ip("127.0.0.1"), &headers),
            ip("127.0.0.1")
        );
    }

    #[test]
    fn the_nearest_hop_that_is_not_trusted_is_the_client() {
        let list = |value: &str| resolve("10.0.0.1", &[("x-forwarded-for", value)]);
        assert_eq!(list("198.51.100.1"), "198.51.100.1");
        assert_eq!(
            list("203.0.113.9, 198.51.100.1"),
            "198.51.100.1",
            "hops that the client wrote are on the left"
        );
        assert_eq!(list("nonsense, 198.51.100.1, 10.2.2.2"), "198.51.100.1");
        assert_eq!(
            list("10.3.3.3,10.2.2.2"),
            "10.3.3.3",
            "a proxy may be the client itself"
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
        assert_eq!(resolve("::ffff:10.0.0.1", &lines), "198.51.100.1");
    }

    #[test]
    fn forwarded_is_parsed_as_rfc_7239_defines_it() {
        let list = |value: &str| resolve("2001:db8:f::1", &[("forwarded", value)]);
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
    fn a_malformed_header_leaves_the_peer_as_the_client() {
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
                resolve("10.0.0.1", &[("x-forwarded-for", value)]),
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
                resolve("10.0.0.1", &[("forwarded", value)]),
                "10.0.0.1",
                "{value:?}"
            );
        }
    }

    // D-92
    #[test]
    fn two_headers_that_differ_are_not_believed() {
        let both = |standard: &str, common: &str| {
            resolve(
                "10.0.0.1",
                &[("forwarded", standard), ("x-forwarded-for", common)],
            )
        };
        assert_eq!(both("for=198.51.100.1", "198.51.100.1"), "198.51.100.1");
        assert_eq!(both("for=203.0.113.9", "198.51.100.1"), "10.0.0.1");
        assert_eq!(both("for=unknown", "198.51.100.1"), "10.0.0.1");
    }
}
