//! Networks in CIDR notation: the addresses whose forwarding headers are believed (D-92).

use std::net::IpAddr;
use std::str::FromStr;

/// A network such as `10.0.0.0/8` or `2001:db8::/32`, or a single address.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_addresses_with_its_prefix_in_either_family() {
        let holds = |network: &str, address: &str| {
            network
                .parse::<TrustedNetwork>()
                .unwrap()
                .contains(address.parse().unwrap())
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
}
