//! Networks in CIDR notation: the addresses whose forwarding headers are trusted (D-92).

use ipnet::IpNet;
use std::net::IpAddr;
use std::str::FromStr;

/// A network such as `10.0.0.0/8` or `2001:db8::/32`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustedNetwork(IpNet);

impl TrustedNetwork {
    /// An IPv4 address also matches as the IPv6 address that maps it, and the other way round.
    pub fn contains(self, ip: IpAddr) -> bool {
        match (self.0, ip.to_canonical()) {
            (IpNet::V4(network), IpAddr::V4(ip)) => network.contains(&ip),
            (IpNet::V6(network), IpAddr::V6(ip)) => network.contains(&ip),
            (IpNet::V6(network), IpAddr::V4(ip)) => network.contains(&ip.to_ipv6_mapped()),
            (IpNet::V4(_), IpAddr::V6(_)) => false,
        }
    }
}

impl FromStr for TrustedNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let syntax_error =
            || format!("{text} is not an address or a network such as 10.0.0.0/8 or 2001:db8::/32");
        let network = match text.trim().split_once('/') {
            // The address is parsed by the standard library, which refuses octal-looking octets.
            Some((ip, length)) => {
                let ip: IpAddr = ip.parse().map_err(|_| syntax_error())?;
                let length: u8 = length.parse().map_err(|_| syntax_error())?;
                IpNet::new(ip, length).map_err(|_| syntax_error())?
            }
            None => IpNet::from(text.trim().parse::<IpAddr>().map_err(|_| syntax_error())?),
        };
        if network.prefix_len() == 0 {
            return Err(format!(
                "{text} is every address: then any client could claim any address"
            ));
        }
        Ok(Self(network.trunc()))
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
