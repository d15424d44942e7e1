//! Who hears what, so that every conversation between agents comes to its end.

use super::append::ChannelSender;
use crate::store::channels::ChannelMemberRecord;
use chorus_wire::channel::channels::{DeliveryMode, SenderKind};

/// Whether a message is for this member. `most` is how many steps from agent to agent may follow a person's word: the limit
/// stops the routing, never the speech.
pub(super) fn is_routed_to(
    member: &ChannelMemberRecord,
    sender: &ChannelSender,
    is_mentioned: bool,
    max_turns: u32,
) -> bool {
    if sender.member_id == Some(member.id) {
        return false;
    }
    match (member.deliver, sender.sender_kind) {
        (DeliveryMode::None, SenderKind::Person | SenderKind::Agent | SenderKind::Hub) => false,
        (DeliveryMode::All, SenderKind::Person) => true,
        (DeliveryMode::Mentions, SenderKind::Person) => is_mentioned,
        (DeliveryMode::All | DeliveryMode::Mentions, SenderKind::Agent) => {
            is_mentioned && sender.turn <= max_turns
        }
        (DeliveryMode::All | DeliveryMode::Mentions, SenderKind::Hub) => false,
    }
}

/// How far from a person's word an answer is: a step after what was delivered with the credential, or after what the member
/// heard last, so that an old credential does not begin a chain anew.
pub(super) fn next_turn(delivered_turn: i64, last_heard_turn: i64) -> u32 {
    u32::try_from(delivered_turn.max(last_heard_turn).max(0))
        .unwrap_or(u32::MAX)
        .saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::channel::channels::MemberRoute;
    use chorus_wire::time::UnixMicros;

    fn member(id: i64, deliver: DeliveryMode) -> ChannelMemberRecord {
        ChannelMemberRecord {
            id,
            channel: 1,
            name: format!("m{id}"),
            principal: None,
            agent_id: None,
            via: MemberRoute::Connection,
            deliver,
            sealed_connection: None,
            sealed_signing_secret: None,
            status: None,
            identity: None,
            unreachable_at: None,
            turn: 0,
            joined_at: UnixMicros(0),
            left_at: None,
        }
    }

    ///
    #[test]
    fn people_reach_all_agents_and_agents_only_whom_they_call() {
        let (all, named) = (
            member(1, DeliveryMode::All),
            member(2, DeliveryMode::Mentions),
        );
        let (person, agent) = (
            ChannelSender::as_operator(),
            ChannelSender::as_agent(&member(3, DeliveryMode::All), 1),
        );
        assert!(
            is_routed_to(&all, &person, false, 8)
                && !is_routed_to(&named, &person, false, 8)
                && is_routed_to(&named, &person, true, 8)
        );
        for member in [&all, &named] {
            assert!(
                !is_routed_to(member, &agent, false, 8) && is_routed_to(member, &agent, true, 8)
            );
            assert!(!is_routed_to(member, &ChannelSender::as_hub(), true, 8));
        }
        assert!(
            !is_routed_to(&member(4, DeliveryMode::None), &person, true, 8),
            "the owner looks for itself"
        );
        assert!(
            !is_routed_to(&all, &ChannelSender::as_agent(&all, 1), true, 8),
            "nobody hears itself"
        );
    }

    ///
    #[test]
    fn after_the_last_step_words_are_kept_and_reach_no_agent() {
        let (all, other) = (member(1, DeliveryMode::All), member(3, DeliveryMode::All));
        for (turn, routed) in [(1, true), (8, true), (9, false), (u32::MAX, false)] {
            assert_eq!(
                is_routed_to(&all, &ChannelSender::as_agent(&other, turn), true, 8),
                routed,
                "{turn}"
            );
        }
        assert_eq!(
            (
                next_turn(0, 0),
                next_turn(0, 5),
                next_turn(3, 0),
                next_turn(-1, -1)
            ),
            (1, 6, 4, 1)
        );
    }
}
