//! The caller whose budget a request is taken from; the same at every hub.

use crate::store::{AgentId, SubjectId};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CallerId {
    /// By its row, so that rotating the key buys nothing.
    Agent(AgentId),
    /// An operator's key, by its fingerprint.
    Operator(u64),
    /// A connection string, by whose it is: a service that serves many agents has a bucket for each.
    Connection(SubjectId),
    /// Requests without a key and with a wrong one. An IPv6 customer has a whole /64, so that is one caller.
    Address(IpAddr),
    /// A wider network, counted as one while there are too many addresses to keep.
    Network(IpAddr),
    /// Wrong keys from an address, or a network: each cost a look-up.
    Guesses(IpAddr),
}

impl CallerId {
    /// A hash that every hub computes alike, evenly distributed.
    pub(crate) fn stable_hash(self) -> u64 {
        let ip_bits = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
            IpAddr::V6(ip) => ip.to_bits(),
        };
        let (kind, value) = match self {
            Self::Agent(id) => (1, u128::from(id.0 as u64)),
            Self::Operator(key) => (2, u128::from(key)),
            Self::Connection(id) => (3, u128::from(id.0 as u64)),
            Self::Address(ip) => (4, ip_bits(ip)),
            Self::Network(ip) => (5, ip_bits(ip)),
            Self::Guesses(ip) => (6, ip_bits(ip)),
        };
        mix_bits(mix_bits(kind ^ (value >> 64) as u64) ^ value as u64)
    }
}

/// A mixing function: every bit of the result depends on every bit of the number.
pub(crate) const fn mix_bits(number: u64) -> u64 {
    let number = (number ^ (number >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 29)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    number ^ (number >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hub_marks_a_caller_alike_and_no_two_kinds_of_one_place() {
        let ip: IpAddr = "192.0.2.1".parse().unwrap();
        let all = [
            CallerId::Agent(AgentId(7)),
            CallerId::Operator(7),
            CallerId::Connection(SubjectId(7)),
            CallerId::Address(ip),
            CallerId::Network(ip),
        ];
        let marks: std::collections::HashSet<u64> = all
            .into_iter()
            .chain([CallerId::Guesses(ip)])
            .map(CallerId::stable_hash)
            .collect();
        assert_eq!(marks.len(), 6);
        // As another build of another hub has it: hubs of two versions agree on who decides.
        assert_eq!(
            CallerId::Agent(AgentId(7)).stable_hash(),
            0x19b8_5bcf_c560_4e37
        );
    }
}
