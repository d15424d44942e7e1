//! Misleading names: those that only operators may give, and those that look like another agent's.

use super::{Identity, Principal};
use crate::Result;
use crate::store::{DbConnection, name_skeletons};
use chorus_wire::{ErrorCode, identity::AgentName};

/// Names under which an agent could pass for the hub, its operators, or all members of a channel.
const RESERVED_NAMES: [&str; 13] = [
    "operator",
    "hub",
    "admin",
    "root",
    "system",
    "support",
    "security",
    "abuse",
    "postmaster",
    "chorus",
    "everyone",
    "here",
    "channel",
];

/// The confusable skeleton (UTS 39) of a case-folded local part. Names have ASCII letters and digits only (ENV-23), and of
/// those the table of Unicode has three rows, so it is written here instead of taken from a crate with all six thousand.
fn confusable_skeleton(local_part: &str) -> String {
    local_part
        .to_ascii_lowercase()
        .replace('0', "o")
        .replace('1', "l")
        .replace('m', "rn")
}

/// The skeleton of a name with its host, under which it is compared; `None` for a name without a host. A host is the same in
/// any letter case and with a dot at its end.
pub(crate) fn name_skeleton(name: &AgentName, own_host: &str) -> Option<String> {
    let canonical = name.canonical_text(own_host);
    let (local_part, host) = canonical.split_once('@')?;
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    Some(format!("{}@{host}", confusable_skeleton(local_part)))
}

/// Whether the local part is a reserved name, or looks like one.
pub(crate) fn is_reserved_name(local_part: &str) -> bool {
    let skeleton = confusable_skeleton(local_part);
    RESERVED_NAMES
        .iter()
        .any(|name| confusable_skeleton(name) == skeleton)
}

impl Identity {
    /// Checks the name of a new agent and returns its skeleton.
    pub(crate) async fn check_new_name(
        &self,
        tx: &DbConnection<'_>,
        principal: &Principal,
        name: &AgentName,
    ) -> Result<Option<String>> {
        let Some(skeleton) = name_skeleton(name, &self.host_name) else {
            return Ok(None);
        };
        let own_host = self.host_name.to_ascii_lowercase();
        let is_reserved = skeleton
            .split_once('@')
            .is_some_and(|(local_part, host)| host == own_host && is_reserved_name(local_part));
        if is_reserved && principal.require_operator().is_err() {
            return Err(ErrorCode::NameReserved.into());
        }
        if name_skeletons::is_skeleton_taken(tx, &skeleton).await? {
            return Err(ErrorCode::NameConfusable.into());
        }
        Ok(Some(skeleton))
    }

    /// `Some(false)` for a name under another host than the hub's own: the hub has not verified that the agent is of that host.
    pub(crate) fn host_verified(&self, agent_id: &str) -> Option<bool> {
        let (_, host) = agent_id.split_once('@')?;
        (host != self.host_name).then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skeleton(name: &str) -> Option<String> {
        name_skeleton(&AgentName::parse("name", name).ok()?, "chorus")
    }

    ///
    #[test]
    fn names_that_look_alike_have_one_skeleton_within_a_host() {
        for alike in [
            "Alice@chorus",
            "a1ice@chorus",
            "ALICE",
            "alice@Chorus",
            "alice@chorus.",
        ] {
            assert_eq!(skeleton(alike), skeleton("alice@chorus"), "{alike}");
        }
        assert_eq!(skeleton("rnei@chorus"), skeleton("mei@chorus"));
        assert_eq!(skeleton("b0b@chorus"), skeleton("bob@chorus"));
        for other in ["alice2@chorus", "alice@elsewhere.example", "a.lice@chorus"] {
            assert_ne!(skeleton(other), skeleton("alice@chorus"), "{other}");
        }
        assert_eq!(skeleton("urn:agent:7"), None, "it has no host");
    }

    ///
    #[test]
    fn what_looks_like_a_reserved_name_is_reserved() {
        for name in ["operator", "0perator", "ADMIN", "adrnin", "hub", "everyone"] {
            assert!(is_reserved_name(name), "{name}");
        }
        assert!(!is_reserved_name("hubert") && !is_reserved_name("operators"));
    }
}
