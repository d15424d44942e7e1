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
    /// All agents' keys that an address uses, together.
    AddressKeys(IpAddr),
    /// Registrations without a key.
    Registrations(IpAddr),
    /// Probes of the hub's health and metrics.
    Probes(IpAddr),
    /// What members by connection string do in the channels of this owner. Apart from the owner's own requests, so that a
    /// member cannot lock the owner out.
    OwnedMembers(AgentId),
}

impl CallerId {
    /// The minutes whose requests may come at once: two for registrations, so that a team can join together.
    pub(super) fn burst_minutes(self) -> u32 {
        match self {
            Self::Registrations(_) => 2,
            Self::Agent(_)
            | Self::Operator(_)
            | Self::Connection(_)
            | Self::Address(_)
            | Self::Network(_)
            | Self::Guesses(_)
            | Self::AddressKeys(_)
            | Self::Probes(_)
            | Self::OwnedMembers(_) => 1,
        }
    }

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
            Self::AddressKeys(ip) => (7, ip_bits(ip)),
            Self::Registrations(ip) => (8, ip_bits(ip)),
            Self::Probes(ip) => (9, ip_bits(ip)),
            Self::OwnedMembers(id) => (10, u128::from(id.0 as u64)),
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
            CallerId::AddressKeys(ip),
            CallerId::Registrations(ip),
            CallerId::Probes(ip),
            CallerId::OwnedMembers(AgentId(7)),
        ];
        let marks: std::collections::HashSet<u64> = all
            .into_iter()
            .chain([CallerId::Guesses(ip)])
            .map(CallerId::stable_hash)
            .collect();
        assert_eq!(marks.len(), 10);
        // As another build of another hub has it: hubs of two versions agree on who decides.
        assert_eq!(
            CallerId::Agent(AgentId(7)).stable_hash(),
            0x19b8_5bcf_c560_4e37
        );
    }
}
