//! What sessions of one handle hear: everything that is for them, once, in order, whenever they look.

use super::super::frame_label::SessionSelector;
use super::super::shared_frame::CHUNK_BYTES;
use super::super::shared_frame::tests::reserve;
use super::*;
use crate::store::AgentId;
use chorus_wire::frame::{FrameFilter, FrameKind, ScopeIdent};
use chorus_wire::identity::Handle;
use chorus_wire::time::UnixMicros;
use proptest::prelude::*;
use std::sync::atomic::AtomicUsize as Count;
use std::task::Wake;

const NOW: Duration = Duration::from_secs(1_000);

fn name(text: &str) -> ScopeIdent {
    ScopeIdent::parse(text).unwrap()
}

/// The label of a frame for all sessions.
pub(in crate::frame) fn label() -> Arc<FrameLabel> {
    aimed(FrameKind::AgentAdvisory, SessionSelector::All)
}

fn aimed(kind: FrameKind, only: SessionSelector) -> Arc<FrameLabel> {
    let sender = Handle::parse("~alice").unwrap();
    Arc::new(FrameLabel {
        kind,
        sender,
        tool: None,
        org: None,
        selector: only,
        excluded: None,
    })
}

pub(in crate::frame) fn session(instrument: &str, filter: &str) -> FrameSession {
    let names = [name(instrument), name("s1"), name("cc")];
    FrameSession::new(
        AgentId(1),
        names,
        FrameFilter::parse(filter).unwrap(),
        UnixMicros(0),
    )
}

fn new_handle() -> HandleSessions {
    HandleSessions::new(7, 0, NOW)
}

fn enter(handle: &HandleSessions, instrument: &str, filter: &str) -> Arc<FrameSession> {
    let session = Arc::new(session(instrument, filter));
    handle
        .add_session(&session, ResumePoint::Now, 0, NOW)
        .unwrap();
    session
}

/// A frame with this label, in this ring only.
fn publish(handle: &HandleSessions, text: &str, label: &Arc<FrameLabel>) -> Option<u64> {
    let build_frame = |cursor, reservation: &mut RingReservation| {
        Arc::new(SharedFrame::for_one_ring(
            cursor,
            text,
            label.clone(),
            NOW,
            reservation,
        ))
    };
    handle.publish_frame(None, label, NOW, &mut reserve(text, 1), build_frame)
}

/// A frame for all sessions.
fn say(handle: &HandleSessions, text: &str) {
    publish(handle, text, &label()).unwrap();
}

/// Counts how often it is woken.
#[derive(Default)]
struct WakeCounter(Count);

impl Wake for WakeCounter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn look(
    handle: &HandleSessions,
    session: &FrameSession,
    wakes: &Arc<WakeCounter>,
) -> Poll<SessionPoll> {
    handle.poll_session(session, &Context::from_waker(&Waker::from(wakes.clone())))
}

/// The data of the events that wait for a session; a gap is `"gap"`.
fn heard(handle: &HandleSessions, session: &FrameSession) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        match look(handle, session, &Arc::default()) {
            Poll::Pending => return all,
            Poll::Ready(SessionPoll::Gap(_)) => all.push("gap".to_owned()),
            Poll::Ready(SessionPoll::Events(events)) => {
                let text = String::from_utf8(events.concat()).unwrap();
                all.extend(
                    text.lines()
                        .filter_map(|line| line.strip_prefix("data: "))
                        .map(str::to_owned),
                );
            }
            Poll::Ready(SessionPoll::Ended(why)) => panic!("{why:?}"),
        }
    }
}

#[test]
fn only_those_whom_a_frame_is_for_are_woken_and_once() {
    let handle = new_handle();
    let (one, other) = (enter(&handle, "cc-a", ""), enter(&handle, "vim", ""));
    let (mine, theirs) = (Arc::<WakeCounter>::default(), Arc::<WakeCounter>::default());
    assert!(look(&handle, &one, &mine).is_pending() && look(&handle, &other, &theirs).is_pending());
    for text in ["1", "2", "3"] {
        let count = publish(
            &handle,
            text,
            &aimed(
                FrameKind::AgentAdvisory,
                SessionSelector::Prefix(name("cc-")),
            ),
        );
        assert_eq!(count, Some(1));
    }
    assert_eq!(
        (
            mine.0.load(Ordering::SeqCst),
            theirs.0.load(Ordering::SeqCst)
        ),
        (1, 0)
    );
    assert_eq!(heard(&handle, &one), ["1", "2", "3"]);
    assert!(heard(&handle, &other).is_empty());
}

///
#[test]
fn a_session_that_fell_off_the_ring_is_told_once_and_goes_on() {
    let handle = new_handle();
    let slow = enter(&handle, "cc-a", "");
    (0..limits::RING_FRAMES + 5).for_each(|n| say(&handle, &n.to_string()));
    let all = heard(&handle, &slow);
    assert_eq!(
        (all.len(), all[0].as_str(), all[1].as_str()),
        (limits::RING_FRAMES + 1, "gap", "5")
    );
    publish(&handle, "after", &label());
    assert_eq!(heard(&handle, &slow), ["after"]);
}

/// what a session has no part in is no gap to it.
#[test]
fn a_session_whose_filter_lets_nothing_through_misses_nothing() {
    let handle = new_handle();
    let narrow = enter(&handle, "cc-a", "kind:agent_query");
    assert!(heard(&handle, &narrow).is_empty());
    (0..limits::RING_FRAMES + 5).for_each(|n| say(&handle, &n.to_string()));
    assert_eq!(
        publish(
            &handle,
            "asked",
            &aimed(FrameKind::AgentQuery, SessionSelector::All)
        ),
        Some(1)
    );
    assert_eq!(heard(&handle, &narrow), ["asked"]);
}

/// The lever: everything that waits goes out in one write.
#[test]
fn everything_that_waits_is_taken_in_pieces_of_a_bounded_size() {
    let handle = new_handle();
    let slow = enter(&handle, "cc-a", "");
    let text = "x".repeat(1_000);
    (0..200).for_each(|_| say(&handle, &text));
    let mut sizes = Vec::new();
    while let Poll::Ready(SessionPoll::Events(events)) = look(&handle, &slow, &Arc::default()) {
        sizes.push(events.concat().len());
    }
    assert_eq!(sizes.len(), 4, "{sizes:?}");
    assert!(sizes.iter().all(|size| *size <= CHUNK_BYTES), "{sizes:?}");
}

/// Invariant 6
#[test]
fn a_handle_has_as_many_streams_as_one_frame_may_reach() {
    let handle = new_handle();
    let all: Vec<Arc<FrameSession>> = (0..limits::STREAMS_PER_HANDLE)
        .map(|_| enter(&handle, "cc-a", ""))
        .collect();
    assert_eq!(
        publish(&handle, "all", &label()),
        Some(limits::SCOPE_EXPANSION_MAX as u64)
    );
    let late = Arc::new(session("cc-b", ""));
    assert_eq!(
        handle.add_session(&late, ResumePoint::Now, 0, NOW),
        Err(JoinRefusal::Full)
    );
    handle.remove_session(&late, NOW);
    assert_eq!(
        handle.session_count(),
        limits::STREAMS_PER_HANDLE,
        "a session that never joined removes no other"
    );
    all.iter()
        .for_each(|session| handle.remove_session(session, NOW));
    assert_eq!(handle.session_count(), 0);
}

#[test]
fn a_stopping_hub_says_what_it_has_and_a_dead_key_hears_nothing_more() {
    for (why, clear, last) in [
        (StreamEnd::Shutdown, false, true),
        (StreamEnd::KeyRotated, false, false),
        (StreamEnd::Unregistered, true, false),
    ] {
        let handle = new_handle();
        let session = enter(&handle, "cc-a", "");
        let wakes = Arc::<WakeCounter>::default();
        assert!(look(&handle, &session, &wakes).is_pending());
        publish(&handle, "last", &label());
        handle.end_sessions(why, clear, NOW);
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        let first = look(&handle, &session, &wakes);
        assert_eq!(
            matches!(first, Poll::Ready(SessionPoll::Events(_))),
            last,
            "{first:?}"
        );
        assert!(
            matches!(look(&handle, &session, &wakes), Poll::Ready(SessionPoll::Ended(end)) if end == why)
        );
        let again = handle.add_session(
            &Arc::new(self::session("cc-b", "")),
            ResumePoint::Now,
            0,
            NOW,
        );
        assert_eq!(again.is_err(), clear);
    }
}

/// Concurrent publishers, readers that sleep and wake: nothing lost, doubled or out of order per sender.
#[test]
fn under_concurrent_publishers_every_session_hears_each_sender_in_order() {
    const SENDERS: usize = 3;
    const EACH: usize = 1_000;
    let handle = new_handle();
    let sessions: Vec<Arc<FrameSession>> = (0..3).map(|_| enter(&handle, "cc-a", "")).collect();
    std::thread::scope(|scope| {
        let handle = &handle;
        for sender in 0..SENDERS {
            scope.spawn(move || (0..EACH).for_each(|n| say(handle, &format!("{sender} {n}"))));
        }
        for session in &sessions {
            scope.spawn(move || {
                let mut next = [0; SENDERS];
                while next != [EACH; SENDERS] {
                    let waiter = Waker::from(Arc::new(Unpark(std::thread::current())));
                    match handle.poll_session(session, &Context::from_waker(&waiter)) {
                        Poll::Pending => std::thread::park(),
                        Poll::Ready(SessionPoll::Events(events)) => {
                            let text = String::from_utf8(events.concat()).unwrap();
                            for data in text.lines().filter_map(|line| line.strip_prefix("data: "))
                            {
                                let (sender, n) = data.split_once(' ').unwrap();
                                let place = &mut next[sender.parse::<usize>().unwrap()];
                                assert_eq!(*place, n.parse::<usize>().unwrap());
                                *place += 1;
                            }
                        }
                        Poll::Ready(other) => panic!("{other:?}"),
                    }
                }
            });
        }
    });
}

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

const INSTRUMENTS: [&str; 3] = ["cc-a", "cc-b", "vim"];
const FILTERS: [&str; 3] = ["", "kind:agent_advisory", "kind:agent_query"];

#[derive(Clone, Debug)]
enum Step {
    Publish(bool, usize),
    Take(usize),
    /// Breaks off and comes back where it was.
    Resume(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (any::<bool>(), 0usize..3).prop_map(|(query, aim)| Step::Publish(query, aim)),
        2 => (0usize..6).prop_map(Step::Take),
        1 => (0usize..6).prop_map(Step::Resume),
    ]
}

proptest! {
    /// Publish, look, break off and resume in any order: every session hears exactly what is for it, and the count is the
    /// number of those who do.
    #[test]
    fn every_session_hears_exactly_what_is_for_it(steps in prop::collection::vec(step(), 1..150)) {
        let handle = new_handle();
        let who = |n: usize| (INSTRUMENTS[n % 3], FILTERS[n / 2 % 3]);
        let mut sessions: Vec<Arc<FrameSession>> = (0..6).map(|n| enter(&handle, who(n).0, who(n).1)).collect();
        let (mut expected, mut got) = (vec![Vec::new(); 6], vec![Vec::new(); 6]);
        for (n, step) in steps.into_iter().enumerate() {
            match step {
                Step::Publish(query, aim) => {
                    let kind = if query { FrameKind::AgentQuery } else { FrameKind::AgentAdvisory };
                    let only = [SessionSelector::All, SessionSelector::Prefix(name("cc-")), SessionSelector::Session(name("vim"), name("s1"))];
                    let only = only.into_iter().nth(aim).unwrap();
                    let text = n.to_string();
                    let mut count = 0;
                    for (place, heard) in expected.iter_mut().enumerate() {
                        let (instrument, filter) = who(place);
                        let named = [true, instrument.starts_with("cc-"), instrument == "vim"][aim];
                        if named && (filter.is_empty() || filter.ends_with(kind.as_str())) {
                            heard.push(text.clone());
                            count += 1;
                        }
                    }
                    prop_assert_eq!(publish(&handle, &text, &aimed(kind, only)), Some(count));
                }
                Step::Take(n) => got[n].extend(heard(&handle, &sessions[n])),
                Step::Resume(n) => {
                    let since = Cursor { epoch: 7, seq: sessions[n].cursor() };
                    handle.remove_session(&sessions[n], NOW);
                    let back = Arc::new(session(who(n).0, who(n).1));
                    prop_assert_eq!(handle.add_session(&back, ResumePoint::After(since), 0, NOW), Ok((since, false)));
                    sessions[n] = back;
                }
            }
        }
        for (n, session) in sessions.iter().enumerate() {
            got[n].extend(heard(&handle, session));
        }
        prop_assert_eq!(got, expected);
    }
}
