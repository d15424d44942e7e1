//! The peer table against heartbeats and deltas, in every order in which they may arrive.

use super::*;
use crate::store::{AgentId, RowId, SubjectId};
use proptest::prelude::*;

fn build_table(presences: &[SubjectPresence]) -> PresenceTable {
    let mut table = PresenceTable::default();
    table.set_presences(presences, &[]);
    table
}

fn here(number: u64, presences: &[SubjectPresence]) -> Heartbeat {
    build_table(presences).build_heartbeat(1, number)
}

fn delta(number: u64, presences: &[SubjectPresence]) -> PresenceDelta {
    PresenceDelta {
        hub: 1,
        number,
        presences: presences.to_vec(),
        wakers: Vec::new(),
        agents_seen: Vec::new(),
    }
}

fn fetched(number: u64, presences: &[SubjectPresence]) -> PresencePage {
    PresencePage {
        delta_number: number,
        presences: presences.to_vec(),
        wakers: Vec::new(),
    }
}

fn known(number: u64, presences: &[SubjectPresence]) -> PeerTable {
    let peers = PeerTable::default();
    assert!(
        peers.apply_heartbeat(here(number, presences)),
        "a hub that is not known is asked"
    );
    assert!(
        peers.begin_sync(1) && !peers.begin_sync(1),
        "once at a time"
    );
    peers.finish_sync(1, fetched(number, presences));
    peers
}

#[test]
fn an_agent_that_listens_elsewhere_is_known_until_it_leaves_or_its_hub_does() {
    let peers = known(4, &[(SubjectId(7), 2, 0), (SubjectId(8), 0, 3)]);
    assert!(peers.is_online(SubjectId(7)) && !peers.is_online(SubjectId(8)));
    assert_eq!(
        (
            peers.hubs_with_stream(SubjectId(7)),
            peers.total_stream_count(),
            peers.session_count(AgentId(8))
        ),
        (vec![1], 2, 3)
    );
    peers.apply_delta(&delta(5, &[(SubjectId(7), 0, 0), (SubjectId(9), 1, 1)]));
    assert!(!peers.is_online(SubjectId(7)) && peers.is_online(SubjectId(9)));
    assert_eq!(peers.total_stream_count(), 1);
    peers.remove_peer(1);
    assert!(!peers.is_online(SubjectId(9)) && peers.is_empty());
}

/// a waker at a peer counts until its stream ends, also one that is learned of while everything is fetched.
#[test]
fn a_waker_elsewhere_is_known_until_its_stream_ends() {
    let waking = |number, wakers: &[WakerCount]| PresenceDelta {
        wakers: wakers.to_vec(),
        ..delta(number, &[(SubjectId(7), 2, 0)])
    };
    let peers = known(0, &[(SubjectId(7), 1, 0)]);
    let reach = || peers.find_reach(SubjectId(7));
    assert_eq!(reach(), Some(StreamReach::Turns));
    peers.apply_delta(&waking(1, &[(SubjectId(7), 1)]));
    assert_eq!(reach(), Some(StreamReach::Wakes));
    peers.apply_delta(&waking(2, &[]));
    assert_eq!(reach(), Some(StreamReach::Turns));
    peers.begin_sync(1);
    peers.apply_delta(&waking(3, &[(SubjectId(7), 1)]));
    peers.finish_sync(1, fetched(2, &[(SubjectId(7), 2, 0)]));
    assert_eq!(reach(), Some(StreamReach::Wakes));
    peers.apply_delta(&delta(4, &[(SubjectId(7), 0, 0)]));
    assert_eq!(reach(), None);
}

/// However busy a hub is, it is not asked for everything while its news come.
#[test]
fn news_that_are_on_the_way_are_waited_for_and_lost_ones_are_asked_for() {
    let peers = known(0, &[]);
    for number in 1..100 {
        assert!(
            !peers.apply_heartbeat(here(number, &[(SubjectId(7), number as u32, 0)])),
            "the news of it come a little later"
        );
        peers.apply_delta(&delta(number, &[(SubjectId(7), number as u32, 0)]));
    }
    assert!(
        !peers.apply_heartbeat(here(100, &[])),
        "they may be on the way"
    );
    assert!(
        peers.apply_heartbeat(here(101, &[])),
        "a beat later they are not"
    );
    let peers = known(0, &[]);
    peers.apply_delta(&delta(2, &[(SubjectId(7), 1, 0)]));
    assert!(
        peers.apply_heartbeat(here(2, &[(SubjectId(7), 1, 0)])),
        "the first news are missing"
    );
    let peers = known(3, &[(SubjectId(7), 2, 0)]);
    assert!(!peers.apply_heartbeat(here(3, &[(SubjectId(7), 2, 0)])));
    assert!(
        peers.apply_heartbeat(here(3, &[(SubjectId(7), 3, 0)])),
        "the same news, and something else"
    );
}

#[test]
fn a_hub_that_leaves_while_it_is_asked_does_not_come_back() {
    let peers = PeerTable::default();
    assert!(peers.begin_sync(1));
    peers.remove_peer(1);
    peers.finish_sync(1, fetched(1, &[(SubjectId(7), 1, 0)]));
    assert!(peers.is_empty());
}

#[test]
fn a_hub_that_is_asked_for_everything_is_asked_in_pieces() {
    let all: Vec<SubjectPresence> = (0..25)
        .map(|subject| (SubjectId(subject * 3), 1, 0))
        .collect();
    let (table, mut found) = (build_table(&all), Vec::new());
    while let page @ [_, ..] = &*table.list_after(
        found
            .last()
            .map_or(SubjectId::BEFORE_ALL, |presence: &SubjectPresence| {
                presence.0
            }),
        10,
    ) {
        found.extend(page);
    }
    assert_eq!(found, all);
}

#[test]
fn hubs_agree_on_who_decides_and_when_one_goes_only_what_it_decided_moves() {
    let knows = |others: &[HubId]| {
        let peers = PeerTable::default();
        for hub in others {
            peers.begin_sync(*hub);
            peers.finish_sync(*hub, fetched(0, &[]));
        }
        peers
    };
    assert_eq!(knows(&[]).select_owner(1, 7), None);
    let (first, second, without) = (knows(&[2, 3]), knows(&[1, 3]), knows(&[2]));
    let mut shares = HashMap::<HubId, u32>::new();
    for mark in 0..3_000 {
        let (owner, others) = first.select_owner(1, mark).unwrap();
        assert_eq!(
            (second.select_owner(2, mark), others),
            (Some((owner, 2)), 2)
        );
        if owner != 3 {
            assert_eq!(without.select_owner(1, mark), Some((owner, 1)));
        }
        *shares.entry(owner).or_default() += 1;
    }
    assert!(
        shares.values().all(|share| (800..1_200).contains(share)),
        "{shares:?}"
    );
}

proptest! {
    /// The sum of a table is that of its presences, whichever way they came to be.
    #[test]
    fn a_sum_knows_nothing_of_the_way(steps in prop::collection::vec(((0..5i64).prop_map(SubjectId), 0..3u32, 0..3u32), 0..40)) {
        let kept = build_table(&steps);
        let fresh = build_table(&kept.list_after(SubjectId::BEFORE_ALL, usize::MAX));
        prop_assert_eq!(kept.build_heartbeat(1, 0), fresh.build_heartbeat(1, 0));
        prop_assert_eq!(kept.stream_count, fresh.stream_count);
    }

    /// Pages of different moments, with news before, between and after them: in the end it is what the hub is.
    #[test]
    fn what_is_learned_while_it_changes_is_right_in_the_end(
        changes in prop::collection::vec(((0..6i64).prop_map(SubjectId), 0..3u32), 1..30),
        asked in 0..30usize,
        lag in 0..6usize,
        pace in 0..4usize,
    ) {
        let (mut theirs, peers, mut applied) = (PresenceTable::default(), PeerTable::default(), 0);
        let said = |number: usize| delta(number as u64, &[(changes[number - 1].0, changes[number - 1].1, 0)]);
        let asked = asked.min(changes.len());
        (0..asked).for_each(|n| theirs.set_presence((changes[n].0, changes[n].1, 0)));
        while applied + lag < asked {
            applied += 1;
            peers.apply_delta(&said(applied));
        }
        prop_assert!(peers.begin_sync(1));
        let (mut presences, mut now) = (Vec::new(), asked);
        loop {
            let page = theirs.list_after(presences.last().map_or(SubjectId::BEFORE_ALL, |presence: &SubjectPresence| presence.0), 2);
            let last = page.len() < 2;
            presences.extend(page);
            for _ in 0..pace.min(changes.len() - now) {
                theirs.set_presence((changes[now].0, changes[now].1, 0));
                now += 1;
            }
            while applied + lag < now {
                applied += 1;
                peers.apply_delta(&said(applied));
            }
            if last {
                break;
            }
        }
        peers.finish_sync(1, fetched(asked as u64, &presences));
        while applied < now {
            applied += 1;
            peers.apply_delta(&said(applied));
        }
        prop_assert!(!peers.apply_heartbeat(theirs.build_heartbeat(1, now as u64)));
        prop_assert!(!peers.apply_heartbeat(theirs.build_heartbeat(1, now as u64)));
        prop_assert_eq!(peers.total_stream_count(), theirs.stream_count);
    }
}
