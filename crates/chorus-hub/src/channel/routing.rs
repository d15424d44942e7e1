//! Routing: which members a message is delivered to, so that every conversation between agents ends
//!

use super::append::ChannelSender;
use crate::store::channels::ChannelMemberRecord;
use chorus_wire::channel::channels::{DeliveryMode, SenderKind};

/// Whether a message is delivered to this member. `max_turns` is how many agent-to-agent steps may
/// follow a person's message. Past this turn limit a message is still appended, but not delivered.
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

/// The turn of an answer: one step after the message that its credential was delivered with, or
/// after the last message that the member received, so that an old credential does not restart a
/// chain.
pub(super) fn next_turn(delivered_turn: i64, last_heard_turn: i64) -> u32 {
    u32::try_from(delivered_turn.max(last_heard_turn).max(0))
        .unwrap_or(u32::MAX)
        .saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{ChannelId, MemberId};
    use chorus_wire::channel::channels::MemberRoute;
    use chorus_wire::time::UnixMicros;

    fn member(id: MemberId, deliver: DeliveryMode) -> ChannelMemberRecord {
        ChannelMemberRecord {
            id,
            channel: ChannelId(1),
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
            refusal: None,
            has_endpoint: false,
            turn: 0,
            joined_at: UnixMicros(0),
            left_at: None,
            accepted_at: Some(UnixMicros(0)),
            token_epoch: 0,
        }
    }

    ///
    #[test]
    fn persons_reach_all_agents_and_agents_only_those_they_mention() {
        let gets_all = member(MemberId(1), DeliveryMode::All);
        let gets_mentions = member(MemberId(2), DeliveryMode::Mentions);
        let person = ChannelSender::as_operator();
        let agent = ChannelSender::as_agent(&member(MemberId(3), DeliveryMode::All), 1);
        assert!(
            is_routed_to(&gets_all, &person, false, 8)
                && !is_routed_to(&gets_mentions, &person, false, 8)
                && is_routed_to(&gets_mentions, &person, true, 8)
        );
        for member in [&gets_all, &gets_mentions] {
            assert!(
                !is_routed_to(member, &agent, false, 8) && is_routed_to(member, &agent, true, 8)
            );
            assert!(!is_routed_to(member, &ChannelSender::as_hub(), true, 8));
        }
        assert!(
            !is_routed_to(&member(MemberId(4), DeliveryMode::None), &person, true, 8),
            "the delivery mode none gets no deliveries, as the owner has it"
        );
        assert!(
            !is_routed_to(&gets_all, &ChannelSender::as_agent(&gets_all, 1), true, 8),
            "a member does not receive its own messages"
        );
    }

    ///
    #[test]
    fn past_the_turn_limit_messages_reach_no_agent() {
        let gets_all = member(MemberId(1), DeliveryMode::All);
        let other = member(MemberId(3), DeliveryMode::All);
        for (turn, is_routed) in [(1, true), (8, true), (9, false), (u32::MAX, false)] {
            assert_eq!(
                is_routed_to(&gets_all, &ChannelSender::as_agent(&other, turn), true, 8),
                is_routed,
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
