//! Who is there: the last time each agent was heard, one number per agent that a request stores and nobody waits for.

use crate::identity::Agent;
use crate::{Hub, Principal, Result};
use chorus_wire::market::discover::PresenceStatus;
use chorus_wire::market::heartbeat::HeartbeatReply;
use chorus_wire::{Code, Error, identity::AgentName, limits};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Ids are given out in order, so a table of tables finds an agent's place without a lock or a hash. The outer one is 64 KiB,
/// and an inner one is made when its first agent is heard.
const TABLE_COUNT: usize = 4_096;
const AGENTS_PER_TABLE: usize = 4_096;

/// Never heard since this hub started.
const NEVER_SEEN: i64 = 0;
/// How often other hubs are told that an agent is still heard, in microseconds: often enough for [`limits::HEARTBEAT_MISSED`].
const ANNOUNCE_EVERY_MICROS: i64 = 5_000_000;
/// Its endpoint refused a job, and it has not been heard since.
const REFUSED: i64 = -1;

type LastSeenTable = Box<[AtomicI64]>;

/// When each agent was last heard, in microseconds of the steady clock. It is in memory: a hub that starts again takes everybody
/// who is registered for present until it knows better.
pub(crate) struct AgentPresence(Box<[OnceLock<LastSeenTable>]>);

impl Default for AgentPresence {
    fn default() -> Self {
        Self((0..TABLE_COUNT).map(|_| OnceLock::new()).collect())
    }
}

impl AgentPresence {
    fn set_last_seen(&self, agent_id: i64, value: i64) {
        let index = agent_id.unsigned_abs() as usize;
        // Beyond the sixteen millionth agent nobody is watched; they count as present.
        if let Some(table) = self.0.get(index / AGENTS_PER_TABLE) {
            let slots = table.get_or_init(|| {
                (0..AGENTS_PER_TABLE)
                    .map(|_| AtomicI64::new(NEVER_SEEN))
                    .collect()
            });
            slots[index % AGENTS_PER_TABLE].store(value, Ordering::Relaxed);
        }
    }

    fn last_seen(&self, agent_id: i64) -> i64 {
        let index = agent_id.unsigned_abs() as usize;
        let slots = self.0.get(index / AGENTS_PER_TABLE).and_then(OnceLock::get);
        slots.map_or(NEVER_SEEN, |slots| {
            slots[index % AGENTS_PER_TABLE].load(Ordering::Relaxed)
        })
    }

    /// The agent was heard; true when other hubs should know, which is now and then.
    pub fn record_seen(&self, agent_id: i64, now: Duration) -> bool {
        let (previous, now) = (self.last_seen(agent_id), (now.as_micros() as i64).max(1));
        self.set_last_seen(agent_id, now);
        previous <= NEVER_SEEN || previous / ANNOUNCE_EVERY_MICROS != now / ANNOUNCE_EVERY_MICROS
    }

    /// The agent was heard at another hub: that counts unless it was heard here later.
    pub fn record_seen_elsewhere(&self, agent_id: i64, at: Duration) {
        let at = (at.as_micros() as i64).max(1);
        if self.last_seen(agent_id) < at {
            self.set_last_seen(agent_id, at);
        }
    }

    /// Everybody after this agent who was heard here or refused a job, and how many microseconds ago; below zero for the latter.
    pub fn list_seen(&self, after: i64, max_agents: usize, now: Duration) -> Vec<(i64, i64)> {
        let (first_id, now) = (
            after.saturating_add(1).max(0) as usize,
            now.as_micros() as i64,
        );
        let tables = self
            .0
            .iter()
            .enumerate()
            .skip(first_id / AGENTS_PER_TABLE)
            .filter_map(|(table_index, table)| Some((table_index, table.get()?)));
        let slots = tables.flat_map(|(table_index, slots)| {
            slots
                .iter()
                .enumerate()
                .map(move |(slot_index, last_seen_at)| {
                    (table_index * AGENTS_PER_TABLE + slot_index, last_seen_at)
                })
        });
        let seen =
            slots
                .filter(|(agent, _)| *agent >= first_id)
                .filter_map(|(agent, last_seen_at)| {
                    let micros_ago = match last_seen_at.load(Ordering::Relaxed) {
                        NEVER_SEEN => return None,
                        REFUSED => REFUSED,
                        seen_at => (now - seen_at).max(0),
                    };
                    Some((agent as i64, micros_ago))
                });
        seen.take(max_agents).collect()
    }

    /// Its endpoint refused a job before this hub knew of anybody; whoever was heard since is there.
    pub fn record_earlier_refusal(&self, agent_id: i64) {
        if self.last_seen(agent_id) == NEVER_SEEN {
            self.set_last_seen(agent_id, REFUSED);
        }
    }

    /// Its endpoint refused a job: gone until it is heard again.
    pub fn record_refusal(&self, agent_id: i64) {
        self.set_last_seen(agent_id, REFUSED);
    }

    fn is_present(&self, agent_id: i64, now: Duration) -> bool {
        match self.last_seen(agent_id) {
            NEVER_SEEN => true,
            REFUSED => false,
            seen_at => {
                now.saturating_sub(Duration::from_micros(seen_at.unsigned_abs()))
                    <= limits::HEARTBEAT_TIMEOUT
            }
        }
    }
}

/// Whether an agent is there: its inbox is open, it was heard lately, or it never had to be.
pub(crate) fn is_online(hub: &Hub, agent: &Agent) -> bool {
    agent_presence(hub, agent.id) == PresenceStatus::Online
}

pub(super) fn agent_presence(hub: &Hub, agent_id: i64) -> PresenceStatus {
    let is_online = hub.stream_bus().is_online(agent_id)
        || hub
            .agent_presence()
            .is_present(agent_id, hub.clock().monotonic_now());
    if is_online {
        PresenceStatus::Online
    } else {
        PresenceStatus::Offline
    }
}

/// The agent's endpoint refused a job.
pub(crate) fn mark_refused(hub: &Hub, agent: &Agent) {
    hub.agent_presence().record_refusal(agent.id);
    hub.report_job_refused(agent.id);
}

/// `POST /heartbeat`: the key says who is there; a name, when there is one, has to be that agent's.
pub async fn record_heartbeat(
    principal: &Principal,
    hub: &Hub,
    named_agent: Option<&str>,
) -> Result<HeartbeatReply> {
    let agent = principal.require_agent()?;
    if let Some(name) = named_agent {
        let name = AgentName::parse("agent_id", name)?;
        let found = crate::identity::find_agent(hub, &name).await?;
        if found.is_none_or(|found| found.id != agent.id) {
            return Err(Error::new(
                Code::Forbidden,
                "an agent's key beats only for that agent",
            ));
        }
    }
    hub.record_agent_seen_everywhere(agent.id).await;
    Ok(heartbeat_reply(hub, agent))
}

fn heartbeat_reply(hub: &Hub, agent: &Agent) -> HeartbeatReply {
    HeartbeatReply {
        agent_id: agent.agent_id.to_string(),
        status: PresenceStatus::Online,
        timestamp_utc: hub.clock().now(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: i64 = 7;
    const START: Duration = Duration::from_secs(1_000);

    #[test]
    fn whoever_was_never_heard_is_present_and_whoever_fell_silent_is_not() {
        let liveness = AgentPresence::default();
        assert!(liveness.is_present(AGENT, START));
        liveness.record_seen(AGENT, START);
        let last = START + limits::HEARTBEAT_TIMEOUT;
        assert!(
            liveness.is_present(AGENT, last)
                && !liveness.is_present(AGENT, last + Duration::from_micros(1))
        );
        assert!(
            liveness.is_present(AGENT + 1, last * 2),
            "another agent is another matter"
        );
        liveness.record_seen(AGENT, last * 2);
        assert!(liveness.is_present(AGENT, last * 2));
    }

    #[test]
    fn a_refused_job_takes_an_agent_away_until_it_is_heard() {
        let liveness = AgentPresence::default();
        liveness.record_refusal(AGENT);
        assert!(!liveness.is_present(AGENT, START));
        liveness.record_seen(AGENT, START);
        assert!(liveness.is_present(AGENT, START));
    }

    #[test]
    fn what_one_hub_knows_another_learns_in_pieces() {
        let (known, newer) = (AgentPresence::default(), AgentPresence::default());
        let agents = [
            0,
            7,
            AGENTS_PER_TABLE as i64 - 1,
            AGENTS_PER_TABLE as i64,
            3 * AGENTS_PER_TABLE as i64 + 5,
        ];
        for agent in agents {
            known.record_seen(agent, START);
        }
        known.record_refusal(7);
        newer.record_seen(agents[4], START * 2);
        let (mut after, mut found) = (i64::MIN, Vec::new());
        while let page @ [.., (last, _)] = &*known.list_seen(after, 2, START * 2) {
            after = *last;
            found.extend_from_slice(page);
        }
        assert_eq!(
            found.iter().map(|(agent, _)| *agent).collect::<Vec<_>>(),
            agents
        );
        for (agent, ago) in found {
            match u64::try_from(ago) {
                Ok(ago) => {
                    newer.record_seen_elsewhere(agent, START * 2 - Duration::from_micros(ago))
                }
                Err(_) => newer.record_earlier_refusal(agent),
            }
        }
        let silent = START + limits::HEARTBEAT_TIMEOUT + Duration::from_micros(1);
        assert_eq!(
            agents.map(|agent| newer.is_present(agent, silent)),
            [false, false, false, false, true]
        );
        known.record_refusal(agents[4]);
        newer.record_earlier_refusal(agents[4]);
        assert!(
            newer.is_present(agents[4], START * 2),
            "it was heard here since"
        );
    }

    #[test]
    fn ids_beyond_the_table_count_as_present_and_break_nothing() {
        let (liveness, far) = (
            AgentPresence::default(),
            (TABLE_COUNT * AGENTS_PER_TABLE) as i64,
        );
        for id in [far - 1, far, i64::MAX, i64::MIN, -1] {
            liveness.record_refusal(id);
        }
        assert!(
            !liveness.is_present(far - 1, START)
                && liveness.is_present(far, START)
                && liveness.is_present(i64::MAX, START)
        );
    }
}
