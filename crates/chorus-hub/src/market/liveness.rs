//! Who is there: the last time each agent was heard, one number per agent that a request stores and nobody waits for.

use crate::identity::Agent;
use crate::{Hub, Principal, Result};
use chorus_wire::market::discover::Presence;
use chorus_wire::market::heartbeat::Heard;
use chorus_wire::{Code, Error, identity::Name, limits};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Ids are given out in order, so a table of tables finds an agent's place without a lock or a hash. The outer one is 64 KiB,
/// and an inner one is made when its first agent is heard.
const TABLES: usize = 4_096;
const PLACES: usize = 4_096;

/// Never heard since this hub started.
const UNHEARD: i64 = 0;
/// How often other hubs are told that an agent is still heard, in microseconds: often enough for [`limits::HEARTBEAT_MISSED`].
const TOLD_EVERY: i64 = 5_000_000;
/// Its endpoint refused a job, and it has not been heard since.
const REFUSED: i64 = -1;

type Places = Box<[AtomicI64]>;

/// When each agent was last heard, in microseconds of the steady clock. It is in memory: a hub that starts again takes everybody
/// who is registered for present until it knows better.
pub(crate) struct Liveness(Box<[OnceLock<Places>]>);

impl Default for Liveness {
    fn default() -> Self {
        Self((0..TABLES).map(|_| OnceLock::new()).collect())
    }
}

impl Liveness {
    fn store(&self, agent: i64, value: i64) {
        let place = agent.unsigned_abs() as usize;
        // Beyond the sixteen millionth agent nobody is watched; they count as present.
        if let Some(table) = self.0.get(place / PLACES) {
            let places =
                table.get_or_init(|| (0..PLACES).map(|_| AtomicI64::new(UNHEARD)).collect());
            places[place % PLACES].store(value, Ordering::Relaxed);
        }
    }

    fn read(&self, agent: i64) -> i64 {
        let place = agent.unsigned_abs() as usize;
        let places = self.0.get(place / PLACES).and_then(OnceLock::get);
        places.map_or(UNHEARD, |places| {
            places[place % PLACES].load(Ordering::Relaxed)
        })
    }

    /// The agent was heard; true when other hubs should know, which is now and then.
    pub fn beat(&self, agent: i64, now: Duration) -> bool {
        let (before, now) = (self.read(agent), (now.as_micros() as i64).max(1));
        self.store(agent, now);
        before <= UNHEARD || before / TOLD_EVERY != now / TOLD_EVERY
    }

    /// The agent was heard at another hub: that counts unless it was heard here later.
    pub fn beat_elsewhere(&self, agent: i64, at: Duration) {
        let at = (at.as_micros() as i64).max(1);
        if self.read(agent) < at {
            self.store(agent, at);
        }
    }

    /// Everybody after this agent who was heard here or refused a job, and how many microseconds ago; below zero for the latter.
    pub fn all(&self, after: i64, most: usize, now: Duration) -> Vec<(i64, i64)> {
        let (first, now) = (
            after.saturating_add(1).max(0) as usize,
            now.as_micros() as i64,
        );
        let tables = self
            .0
            .iter()
            .enumerate()
            .skip(first / PLACES)
            .filter_map(|(n, table)| Some((n, table.get()?)));
        let places = tables.flat_map(|(n, places)| {
            places
                .iter()
                .enumerate()
                .map(move |(m, at)| (n * PLACES + m, at))
        });
        let heard = places
            .filter(|(agent, _)| *agent >= first)
            .filter_map(|(agent, at)| {
                let ago = match at.load(Ordering::Relaxed) {
                    UNHEARD => return None,
                    REFUSED => REFUSED,
                    heard => (now - heard).max(0),
                };
                Some((agent as i64, ago))
            });
        heard.take(most).collect()
    }

    /// Its endpoint refused a job before this hub knew of anybody; whoever was heard since is there.
    pub fn refused_before(&self, agent: i64) {
        if self.read(agent) == UNHEARD {
            self.store(agent, REFUSED);
        }
    }

    /// Its endpoint refused a job: gone until it is heard again.
    pub fn refused(&self, agent: i64) {
        self.store(agent, REFUSED);
    }

    fn present(&self, agent: i64, now: Duration) -> bool {
        match self.read(agent) {
            UNHEARD => true,
            REFUSED => false,
            heard => {
                now.saturating_sub(Duration::from_micros(heard.unsigned_abs()))
                    <= limits::HEARTBEAT_MISSED
            }
        }
    }
}

/// Whether an agent is there: its inbox is open, it was heard lately, or it never had to be.
pub(crate) fn is_online(hub: &Hub, agent: &Agent) -> bool {
    presence(hub, agent.id) == Presence::Online
}

pub(super) fn presence(hub: &Hub, agent: i64) -> Presence {
    let there = hub.bus().online(agent) || hub.liveness().present(agent, hub.clock().steady());
    if there {
        Presence::Online
    } else {
        Presence::Offline
    }
}

/// The agent's endpoint refused a job.
pub(crate) fn refused(hub: &Hub, agent: &Agent) {
    hub.liveness().refused(agent.id);
    hub.refused(agent.id);
}

/// `POST /heartbeat`: the key says who is there; a name, when there is one, has to be that agent's.
pub async fn heartbeat(who: &Principal, hub: &Hub, named: Option<&str>) -> Result<Heard> {
    let agent = who.agent()?;
    if let Some(name) = named {
        let name = Name::parse("agent_id", name)?;
        let found = crate::identity::find(hub, &name).await?;
        if found.is_none_or(|found| found.id != agent.id) {
            return Err(Error::new(
                Code::Forbidden,
                "an agent's key beats only for that agent",
            ));
        }
    }
    hub.heard(agent.id).await;
    Ok(heard(hub, agent))
}

fn heard(hub: &Hub, agent: &Agent) -> Heard {
    Heard {
        agent_id: agent.agent_id.to_string(),
        status: Presence::Online,
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
        let liveness = Liveness::default();
        assert!(liveness.present(AGENT, START));
        liveness.beat(AGENT, START);
        let last = START + limits::HEARTBEAT_MISSED;
        assert!(
            liveness.present(AGENT, last)
                && !liveness.present(AGENT, last + Duration::from_micros(1))
        );
        assert!(
            liveness.present(AGENT + 1, last * 2),
            "another agent is another matter"
        );
        liveness.beat(AGENT, last * 2);
        assert!(liveness.present(AGENT, last * 2));
    }

    #[test]
    fn a_refused_job_takes_an_agent_away_until_it_is_heard() {
        let liveness = Liveness::default();
        liveness.refused(AGENT);
        assert!(!liveness.present(AGENT, START));
        liveness.beat(AGENT, START);
        assert!(liveness.present(AGENT, START));
    }

    #[test]
    fn what_one_hub_knows_another_learns_in_pieces() {
        let (known, newer) = (Liveness::default(), Liveness::default());
        let agents = [
            0,
            7,
            PLACES as i64 - 1,
            PLACES as i64,
            3 * PLACES as i64 + 5,
        ];
        for agent in agents {
            known.beat(agent, START);
        }
        known.refused(7);
        newer.beat(agents[4], START * 2);
        let (mut after, mut found) = (i64::MIN, Vec::new());
        while let page @ [.., (last, _)] = &*known.all(after, 2, START * 2) {
            after = *last;
            found.extend_from_slice(page);
        }
        assert_eq!(
            found.iter().map(|(agent, _)| *agent).collect::<Vec<_>>(),
            agents
        );
        for (agent, ago) in found {
            match u64::try_from(ago) {
                Ok(ago) => newer.beat_elsewhere(agent, START * 2 - Duration::from_micros(ago)),
                Err(_) => newer.refused_before(agent),
            }
        }
        let silent = START + limits::HEARTBEAT_MISSED + Duration::from_micros(1);
        assert_eq!(
            agents.map(|agent| newer.present(agent, silent)),
            [false, false, false, false, true]
        );
        known.refused(agents[4]);
        newer.refused_before(agents[4]);
        assert!(
            newer.present(agents[4], START * 2),
            "it was heard here since"
        );
    }

    #[test]
    fn ids_beyond_the_table_count_as_present_and_break_nothing() {
        let (liveness, far) = (Liveness::default(), (TABLES * PLACES) as i64);
        for id in [far - 1, far, i64::MAX, i64::MIN, -1] {
            liveness.refused(id);
        }
        assert!(
            !liveness.present(far - 1, START)
                && liveness.present(far, START)
                && liveness.present(i64::MAX, START)
        );
    }
}
