//! The registry: which rings exist, what they hold, and what is dropped when all of them together are full.

use super::super::handle_sessions::tests::{label, session};
use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

const NOW: Duration = Duration::from_secs(1_000);

fn used_bytes(registry: &SessionRegistry) -> usize {
    registry.ring_memory.used_bytes()
}

/// R-52, invariant 6
#[test]
fn a_room_goes_when_nobody_can_come_back_for_anything() {
    let registry = SessionRegistry::with_memory(crate::limits::ALL_RINGS_BYTES);
    registry.publish_frame(&[AgentId(1)], None, "{}", &label(), NOW);
    let joined = registry
        .join_session(session("cc-a", ""), ResumePoint::Now, NOW)
        .unwrap();
    assert!(used_bytes(&registry) > 0);
    let later = NOW + Duration::from_secs(301);
    registry.sweep_expired(later);
    assert!(registry.get(AgentId(1)).is_some(), "a session is live");
    assert_eq!(used_bytes(&registry), 0, "what is past its time is gone");
    joined
        .handle_sessions
        .remove_session(&joined.session, later);
    registry.sweep_expired(later + Duration::from_secs(300));
    assert!(
        registry.get(AgentId(1)).is_some(),
        "a session that left may come back"
    );
    registry.sweep_expired(later + Duration::from_secs(301));
    assert!(registry.get(AgentId(1)).is_none());
}

#[test]
fn what_is_said_to_nobody_is_kept_for_who_comes_in_time() {
    let registry = SessionRegistry::with_memory(crate::limits::ALL_RINGS_BYTES);
    assert_eq!(
        registry.publish_frame(&[AgentId(1)], None, "{}", &label(), NOW),
        0
    );
    registry.sweep_expired(NOW + Duration::from_secs(300));
    let joined = registry
        .join_session(
            session("cc-a", ""),
            ResumePoint::Unknown,
            NOW + Duration::from_secs(300),
        )
        .unwrap();
    assert_eq!((joined.start_cursor.seq, joined.has_gap), (0, true));
    registry.sweep_expired(NOW + Duration::from_secs(301));
    assert!(used_bytes(&registry) > 0, "it is about to be taken");
}

/// a name that is taken again starts from nothing.
#[test]
fn a_gone_principals_frames_go_with_it_and_a_rotated_keys_stay() {
    let registry = SessionRegistry::with_memory(crate::limits::ALL_RINGS_BYTES);
    registry.publish_frame(&[AgentId(1)], None, "{}", &label(), NOW);
    let first = registry
        .join_session(session("cc-a", ""), ResumePoint::Now, NOW)
        .unwrap();
    registry.end_sessions(AgentId(1), StreamEnd::KeyRotated, NOW);
    assert_eq!(registry.session_count(AgentId(1)), 0);
    let again = registry
        .join_session(
            session("cc-a", ""),
            ResumePoint::After(first.start_cursor),
            NOW,
        )
        .unwrap();
    assert!(!again.has_gap);
    registry.end_sessions(AgentId(1), StreamEnd::Unregistered, NOW);
    assert_eq!(used_bytes(&registry), 0);
    let other = registry
        .join_session(
            session("cc-a", ""),
            ResumePoint::After(first.start_cursor),
            NOW,
        )
        .unwrap();
    assert_eq!((other.start_cursor.seq, other.has_gap), (0, true));
}

fn frame_count(registry: &SessionRegistry, id: i64) -> usize {
    registry
        .get(AgentId(id))
        .map_or(0, |handle| handle.list_frames().len())
}

/// The memory of everything that the rings hold: each frame once, and each entry.
fn real_bytes(registry: &SessionRegistry, ids: std::ops::Range<i64>) -> usize {
    let mut seen = HashSet::new();
    let mut total = 0;
    for frame in ids
        .filter_map(|id| registry.get(AgentId(id)))
        .flat_map(|handle| handle.list_frames())
    {
        total += RING_ENTRY_BYTES;
        if seen.insert(Arc::as_ptr(&frame)) {
            total += frame.claimed_bytes();
        }
    }
    total
}

/// without a shared memory limit, one frame of 60 KB to 9 800 members took 577 MB.
#[test]
fn one_frame_to_an_organisation_is_stored_once() {
    let registry = SessionRegistry::with_memory(crate::limits::ALL_RINGS_BYTES);
    let members: Vec<AgentId> = (1..=9_800).map(AgentId).collect();
    let text = "x".repeat(60_000);
    registry.publish_frame(&members, None, &text, &label(), NOW);
    assert!(
        used_bytes(&registry) < 60_000 + 9_800 * 100,
        "{}",
        used_bytes(&registry)
    );
    assert_eq!(used_bytes(&registry), real_bytes(&registry, 1..9_801));
}

/// R-99, invariant 6
#[test]
fn when_all_rings_are_full_the_largest_give_up_their_oldest_frames() {
    let registry = SessionRegistry::with_memory(2_000_000);
    for n in 0..20 {
        registry.publish_frame(&[AgentId(1)], None, &n.to_string(), &label(), NOW);
    }
    let text = "x".repeat(20_000);
    for n in 0..1_000 {
        registry.publish_frame(&[AgentId(10 + n % 7)], None, &text, &label(), NOW);
        assert!(used_bytes(&registry) <= 2_000_000);
    }
    assert_eq!(
        frame_count(&registry, 1),
        20,
        "a small ring keeps what it has"
    );
    let kept: Vec<usize> = (10..17).map(|id| frame_count(&registry, id)).collect();
    assert!(
        kept.iter().all(|count| (8..=16).contains(count)),
        "{kept:?}"
    );
    // A publisher is not the one that pays for the others.
    registry.publish_frame(&[AgentId(1)], None, "21", &label(), NOW);
    assert_eq!(frame_count(&registry, 1), 21);
    let memory = registry.ring_memory.clone();
    drop(registry);
    assert_eq!(memory.used_bytes(), 0, "everything is released");
}

/// the limit had a floor of one frame per ring.
#[test]
fn the_limit_holds_with_more_rings_than_frames_fit() {
    let registry = SessionRegistry::with_memory(1_000_000);
    let text = "x".repeat(60_000);
    for id in 0..500 {
        registry.publish_frame(&[AgentId(id)], None, &text, &label(), NOW);
        assert!(used_bytes(&registry) <= 1_000_000);
        assert_eq!(frame_count(&registry, id), 1, "the newest frame is there");
    }
    assert_eq!(used_bytes(&registry), real_bytes(&registry, 0..500));
}

#[test]
fn concurrent_publishers_do_not_exceed_the_limit() {
    let registry = SessionRegistry::with_memory(1_000_000);
    let text = "x".repeat(30_000);
    std::thread::scope(|scope| {
        for publisher in 0..4 {
            let (registry, text) = (&registry, &text);
            scope.spawn(move || {
                for n in 0..300 {
                    let targets = [AgentId(publisher), AgentId(10 + n % 5)];
                    registry.publish_frame(
                        &targets[..1 + n as usize % 2],
                        None,
                        text,
                        &label(),
                        NOW,
                    );
                    assert!(used_bytes(registry) <= 1_000_000);
                }
            });
        }
    });
    assert_eq!(used_bytes(&registry), real_bytes(&registry, 0..20));
}

#[derive(Clone, Debug)]
enum MemoryStep {
    Publish { first: i64, count: i64, size: usize },
    Wait(u64),
    Unregister(i64),
}

fn memory_step() -> impl Strategy<Value = MemoryStep> {
    prop_oneof![
        8 => (0i64..12, 1i64..8, 1usize..9_000)
            .prop_map(|(first, count, size)| MemoryStep::Publish { first, count, size }),
        1 => (1u64..200).prop_map(MemoryStep::Wait),
        1 => (0i64..20).prop_map(MemoryStep::Unregister),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever is published, expires or is unregistered: the account is what the rings really hold, and within its limit; and
    /// a ring gives up frames only while no other is much larger.
    #[test]
    fn the_account_is_what_the_rings_hold(steps in prop::collection::vec(memory_step(), 1..80)) {
        const MAX: usize = 100_000;
        let registry = SessionRegistry::with_memory(MAX);
        let mut now = NOW;
        for step in steps {
            match step {
                MemoryStep::Publish { first, count, size } => {
                    let targets: Vec<AgentId> = (first..first + count).map(AgentId).collect();
                    let charges: Vec<usize> = (0..20).map(|id| registry.get(AgentId(id)).map_or(0, |handle| handle.charged_bytes())).collect();
                    let largest = charges.iter().copied().max().unwrap_or_default();
                    registry.publish_frame(&targets, None, &"x".repeat(size), &label(), now);
                    for id in (0..20i64).filter(|id| !(first..first + count).contains(id)) {
                        let before = charges[id as usize];
                        let after = registry.get(AgentId(id)).map_or(0, |handle| handle.charged_bytes());
                        // With rings of this size one frame is up to half of a ring.
                        prop_assert!(after == before || before + 20_000 >= largest, "{before} {after} {largest}");
                    }
                }
                MemoryStep::Wait(seconds) => {
                    now += Duration::from_secs(seconds);
                    registry.sweep_expired(now);
                }
                MemoryStep::Unregister(id) => registry.end_sessions(AgentId(id), StreamEnd::Unregistered, now),
            }
            prop_assert!(used_bytes(&registry) <= MAX);
            prop_assert_eq!(used_bytes(&registry), real_bytes(&registry, 0..20));
        }
    }
}
