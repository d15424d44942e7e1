//! Who hears what, so that every conversation between agents comes to its end.

use super::say::Speaker;
use crate::store::channels::Member;
use chorus_wire::channel::room::{Deliver, Voice};

/// Whether a message is for this member. `most` is how many steps from agent to agent may follow a person's word: the limit
/// stops the routing, never the speech.
pub(super) fn hears(member: &Member, from: &Speaker, called: bool, most: u32) -> bool {
    if from.member == Some(member.id) {
        return false;
    }
    match (member.deliver, from.voice) {
        (Deliver::None, Voice::Person | Voice::Agent | Voice::Hub) => false,
        (Deliver::All, Voice::Person) => true,
        (Deliver::Mentions, Voice::Person) => called,
        (Deliver::All | Deliver::Mentions, Voice::Agent) => called && from.turn <= most,
        (Deliver::All | Deliver::Mentions, Voice::Hub) => false,
    }
}

/// How far from a person's word an answer is: a step after what was delivered with the credential, or after what the member
/// heard last, so that an old credential does not begin a chain anew.
pub(super) fn next_turn(delivered: i64, heard: i64) -> u32 {
    u32::try_from(delivered.max(heard).max(0))
        .unwrap_or(u32::MAX)
        .saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::channel::room::Via;
    use chorus_wire::time::Micros;

    fn member(id: i64, deliver: Deliver) -> Member {
        Member {
            id,
            channel: 1,
            name: format!("m{id}"),
            principal: None,
            agent_id: None,
            via: Via::Connection,
            deliver,
            connection: None,
            signing: None,
            status: None,
            identity: None,
            unreachable_at: None,
            turn: 0,
            joined_at: Micros(0),
            left_at: None,
        }
    }

    ///
    #[test]
    fn people_reach_all_agents_and_agents_only_whom_they_call() {
        let (all, named) = (member(1, Deliver::All), member(2, Deliver::Mentions));
        let (person, agent) = (
            Speaker::operator(),
            Speaker::agent(&member(3, Deliver::All), 1),
        );
        assert!(
            hears(&all, &person, false, 8)
                && !hears(&named, &person, false, 8)
                && hears(&named, &person, true, 8)
        );
        for member in [&all, &named] {
            assert!(!hears(member, &agent, false, 8) && hears(member, &agent, true, 8));
            assert!(!hears(member, &Speaker::hub(), true, 8));
        }
        assert!(
            !hears(&member(4, Deliver::None), &person, true, 8),
            "the owner looks for itself"
        );
        assert!(
            !hears(&all, &Speaker::agent(&all, 1), true, 8),
            "nobody hears itself"
        );
    }

    ///
    #[test]
    fn after_the_last_step_words_are_kept_and_reach_no_agent() {
        let (all, other) = (member(1, Deliver::All), member(3, Deliver::All));
        for (turn, routed) in [(1, true), (8, true), (9, false), (u32::MAX, false)] {
            assert_eq!(
                hears(&all, &Speaker::agent(&other, turn), true, 8),
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
