//! Presence: when each agent was last seen, one atomic number per agent that requests store without waiting.

use super::Identity;
use crate::store::AgentId;
use chorus_wire::limits;
use futures_util::future::BoxFuture;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Agent ids are consecutive, so a table of tables finds an agent's slot without a lock or a hash. The outer table is 64 KiB;
/// an inner one is allocated when its first agent is seen.
const TABLE_COUNT: usize = 4_096;
const AGENTS_PER_TABLE: usize = 4_096;

/// Not seen since this hub started.
const NEVER_SEEN: i64 = 0;
/// How often peers are told that an agent is still seen, in microseconds: well within [`limits::HEARTBEAT_TIMEOUT`].
const ANNOUNCE_EVERY_MICROS: i64 = 5_000_000;
/// What peers are told of a refusal instead of a time. Here a refusal is kept as its negative time.
const REFUSED: i64 = -1;

type LastSeenTable = Box<[AtomicI64]>;

/// When each agent was last seen, in microseconds of the monotonic clock. It is only in memory: after a restart every registered
/// agent counts as present until it was seen and has fallen silent.
pub(crate) struct AgentPresence(Box<[OnceLock<LastSeenTable>]>);

impl Default for AgentPresence {
    fn default() -> Self {
        Self((0..TABLE_COUNT).map(|_| OnceLock::new()).collect())
    }
}

impl AgentPresence {
    fn set_last_seen(&self, agent_id: AgentId, value: i64) {
        let index = agent_id.0.unsigned_abs() as usize;
        // Agents beyond the last table (id 16.7 million) are not tracked; they count as present.
        if let Some(table) = self.0.get(index / AGENTS_PER_TABLE) {
            let slots = table.get_or_init(|| {
                (0..AGENTS_PER_TABLE)
                    .map(|_| AtomicI64::new(NEVER_SEEN))
                    .collect()
            });
            slots[index % AGENTS_PER_TABLE].store(value, Ordering::Relaxed);
        }
    }

    fn last_seen(&self, agent_id: AgentId) -> i64 {
        let index = agent_id.0.unsigned_abs() as usize;
        let slots = self.0.get(index / AGENTS_PER_TABLE).and_then(OnceLock::get);
        slots.map_or(NEVER_SEEN, |slots| {
            slots[index % AGENTS_PER_TABLE].load(Ordering::Relaxed)
        })
    }

    /// The agent was seen; true when it is time to announce that to peers.
    pub fn record_seen(&self, agent_id: AgentId, now: Duration) -> bool {
        let previous = self.last_seen(agent_id);
        let now = (now.as_micros() as i64).max(1);
        self.set_last_seen(agent_id, now);
        previous <= NEVER_SEEN || previous / ANNOUNCE_EVERY_MICROS != now / ANNOUNCE_EVERY_MICROS
    }

    /// The agent was seen at a peer: that counts unless it was seen here later.
    pub fn record_seen_elsewhere(&self, agent_id: AgentId, at: Duration) {
        let at = (at.as_micros() as i64).max(1);
        if self.last_seen(agent_id) < at {
            self.set_last_seen(agent_id, at);
        }
    }

    /// The agents after this one that were seen or refused a job, and how many microseconds ago; negative for a refusal.
    pub fn list_seen(
        &self,
        after: AgentId,
        max_agents: usize,
        now: Duration,
    ) -> Vec<(AgentId, i64)> {
        let first_id = after.0.saturating_add(1).max(0) as usize;
        let now = now.as_micros() as i64;
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
                        refused_at if refused_at < 0 => REFUSED,
                        seen_at => (now - seen_at).max(0),
                    };
                    Some((AgentId(agent as i64), micros_ago))
                });
        seen.take(max_agents).collect()
    }

    /// Its endpoint refused a job before this hub started; an agent that was seen since is present.
    pub fn record_earlier_refusal(&self, agent_id: AgentId, now: Duration) {
        if self.last_seen(agent_id) == NEVER_SEEN {
            self.record_refusal(agent_id, now);
        }
    }

    /// Its endpoint refused a job: absent until it is seen again, and at most for [`limits::REFUSAL_PAUSE`]. An endpoint that is
    /// restarted comes back without a request of its agent.
    pub fn record_refusal(&self, agent_id: AgentId, now: Duration) {
        self.set_last_seen(agent_id, -(now.as_micros() as i64).max(1));
    }

    /// Whether its endpoint refused a job a moment ago.
    fn has_refused(&self, agent_id: AgentId, now: Duration) -> bool {
        let last_seen = self.last_seen(agent_id);
        let refused_at = Duration::from_micros(last_seen.unsigned_abs());
        last_seen < 0 && now.saturating_sub(refused_at) <= limits::REFUSAL_PAUSE
    }

    fn is_present(&self, agent_id: AgentId, now: Duration) -> bool {
        match self.last_seen(agent_id) {
            NEVER_SEEN => true,
            refused_at if refused_at < 0 => !self.has_refused(agent_id, now),
            seen_at => {
                now.saturating_sub(Duration::from_micros(seen_at.unsigned_abs()))
                    <= limits::HEARTBEAT_TIMEOUT
            }
        }
    }
}

/// How other hubs learn when an agent was seen here.
pub(crate) trait PresenceAnnouncer: Send + Sync {
    /// The agent was seen at this time of the monotonic clock; `None` when its endpoint refused a job.
    fn announce_agent_seen(&self, agent_id: AgentId, seen_at: Option<Duration>);
    /// Completes when peers know what was announced so far, or do not answer in time.
    fn wait_announced(&self) -> BoxFuture<'_, ()>;
}

impl Identity {
    /// The agent was seen. Returns whether it is being announced to peers.
    pub(crate) fn record_agent_seen(&self, agent_id: AgentId) -> bool {
        let now = self.clock.monotonic_now();
        let is_due = self.state.presence.record_seen(agent_id, now);
        match &self.peers {
            Some(peers) if is_due => {
                peers.presence.announce_agent_seen(agent_id, Some(now));
                true
            }
            Some(_) | None => false,
        }
    }

    /// The same, and completes when peers know it.
    pub(crate) async fn record_agent_seen_everywhere(&self, agent_id: AgentId) {
        if self.record_agent_seen(agent_id)
            && let Some(peers) = &self.peers
        {
            peers.presence.wait_announced().await;
        }
    }

    /// The agent's endpoint refused a job: it is offline until it is seen again.
    pub(crate) fn record_refusal(&self, agent_id: AgentId) {
        let now = self.clock.monotonic_now();
        self.state.presence.record_refusal(agent_id, now);
        if let Some(peers) = &self.peers {
            peers.presence.announce_agent_seen(agent_id, None);
        }
    }

    /// Whether the agent's endpoint refused a job a moment ago.
    pub(crate) fn has_refused(&self, agent_id: AgentId) -> bool {
        self.state
            .presence
            .has_refused(agent_id, self.clock.monotonic_now())
    }

    /// Whether the agent was seen recently, or has not been seen since this hub started.
    pub(crate) fn is_present(&self, agent_id: AgentId) -> bool {
        self.state
            .presence
            .is_present(agent_id, self.clock.monotonic_now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RowId;

    const AGENT: AgentId = AgentId(7);
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
            liveness.is_present(AgentId(8), last * 2),
            "another agent is another matter"
        );
        liveness.record_seen(AGENT, last * 2);
        assert!(liveness.is_present(AGENT, last * 2));
    }

    #[test]
    fn a_refused_job_takes_an_agent_away_for_a_moment() {
        let liveness = AgentPresence::default();
        liveness.record_refusal(AGENT, START);
        assert!(!liveness.is_present(AGENT, START));
        let last = START + limits::REFUSAL_PAUSE;
        assert!(!liveness.is_present(AGENT, last) && liveness.has_refused(AGENT, last));
        let later = last + Duration::from_micros(1);
        assert!(liveness.is_present(AGENT, later) && !liveness.has_refused(AGENT, later));
        liveness.record_refusal(AGENT, START);
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
        ]
        .map(AgentId);
        for agent in agents {
            known.record_seen(agent, START);
        }
        known.record_refusal(AgentId(7), START * 2);
        newer.record_seen(agents[4], START * 2);
        let (mut after, mut found) = (AgentId::BEFORE_ALL, Vec::new());
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
                Err(_) => newer.record_earlier_refusal(agent, START + limits::HEARTBEAT_TIMEOUT),
            }
        }
        let silent = START + limits::HEARTBEAT_TIMEOUT + Duration::from_micros(1);
        assert_eq!(
            agents.map(|agent| newer.is_present(agent, silent)),
            [false, false, false, false, true]
        );
        known.record_refusal(agents[4], START);
        newer.record_earlier_refusal(agents[4], START);
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
            liveness.record_refusal(AgentId(id), START);
        }
        assert!(
            !liveness.is_present(AgentId(far - 1), START)
                && liveness.is_present(AgentId(far), START)
                && liveness.is_present(AgentId::AFTER_ALL, START)
        );
    }
}
