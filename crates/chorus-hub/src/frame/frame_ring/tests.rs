//! The ring against a model of it, and each bound by itself.

use super::super::handle_sessions::tests::label;
use super::super::shared_frame::EventBatch;
use super::super::shared_frame::tests::reserve;
use super::*;
use proptest::prelude::*;

const BOUNDS: RingRetention = RingRetention {
    seconds: 300,
    frames: 10,
    bytes: 1 << 20,
};
const START: Duration = Duration::from_secs(1_000);

fn render(ring: &FrameRing, seq: u64, entry: &RingEntry) -> String {
    let mut batch = EventBatch::new(1);
    assert!(batch.push(&entry.frame, ring.cursor_at(seq)));
    String::from_utf8(batch.into_parts().concat()).unwrap()
}

fn push(ring: &mut FrameRing, text: &str, now: Duration) {
    ring.push(None, &mut reserve(text, 1), |cursor, reservation| {
        Arc::new(SharedFrame::for_one_ring(
            cursor,
            text,
            label(),
            now,
            reservation,
        ))
    });
}

fn texts(ring: &FrameRing, after: u64) -> Vec<(u64, String)> {
    let text = |seq, entry| {
        let event = render(ring, seq, entry);
        event
            .split_once("\ndata: ")
            .unwrap()
            .1
            .trim_end()
            .to_owned()
    };
    ring.entries_after(after)
        .map(|(seq, entry)| (seq, text(seq, entry)))
        .collect()
}

fn filled(bounds: RingRetention, count: usize) -> FrameRing {
    let mut ring = FrameRing::new(7, 0, bounds);
    (1..=count).for_each(|n| push(&mut ring, &n.to_string(), START));
    ring
}

/// FRM-69, R-42
#[test]
fn an_event_has_its_kind_its_id_and_the_frame_on_one_line() {
    let ring = filled(BOUNDS, 1);
    let (seq, entry) = ring.entries_after(0).next().unwrap();
    assert_eq!(
        render(&ring, seq, entry),
        "27\r\nevent: agent_advisory\nid: 7-1\ndata: 1\n\n\r\n"
    );
}

#[test]
fn the_oldest_go_when_there_are_too_many() {
    let ring = filled(BOUNDS, 12);
    assert_eq!((ring.floor_seq(), ring.newest_seq()), (2, 12));
    assert_eq!(texts(&ring, 2).first(), Some(&(3, "3".to_owned())));
}

#[test]
fn the_oldest_go_when_they_are_too_large() {
    let mut ring = FrameRing::new(
        7,
        0,
        RingRetention {
            bytes: 10_000,
            ..BOUNDS
        },
    );
    for _ in 0..5 {
        push(&mut ring, &"x".repeat(3_000), START);
        assert!(ring.size_bytes <= 10_000);
    }
    assert_eq!((ring.floor_seq(), ring.newest_seq()), (2, 5));
    ring.clear();
    assert_eq!((ring.floor_seq(), ring.size_bytes), (5, 0));
}

#[test]
fn what_is_past_its_time_goes_unless_somebody_is_about_to_hear_it() {
    let mut ring = filled(BOUNDS, 3);
    let kept = START + Duration::from_secs(300);
    push(&mut ring, "4", kept);
    ring.drop_expired(kept, u64::MAX);
    assert_eq!(ring.floor_seq(), 0, "five minutes are five minutes");
    let later = kept + Duration::from_micros(1);
    assert_eq!(
        (ring.floor_seq(), ring.floor_seq_at(later)),
        (0, 3),
        "gone for those who come now"
    );
    ring.drop_expired(later, 2);
    assert_eq!(ring.floor_seq(), 2);
    ring.drop_expired(later, u64::MAX);
    assert_eq!(ring.floor_seq(), 3);
}

///
#[test]
fn only_an_id_of_this_ring_that_nothing_is_missing_after_resumes() {
    let ring = filled(BOUNDS, 12);
    let resumed = |epoch, seq| ring.find_resume_seq(Cursor { epoch, seq }, 0, START);
    assert_eq!([resumed(7, 2), resumed(7, 12)], [Some(2), Some(12)]);
    for (epoch, seq) in [(7, 1), (7, 0), (7, 13), (6, 5), (0, 5)] {
        assert_eq!(resumed(epoch, seq), None, "{epoch}-{seq}");
    }
    let empty = FrameRing::new(7, 0, BOUNDS);
    assert_eq!(
        empty.find_resume_seq(Cursor { epoch: 7, seq: 0 }, 0, START),
        Some(0)
    );
}

proptest! {
    /// Whatever comes and goes, the ring holds the newest frames, all in a row, within every bound.
    #[test]
    fn the_ring_is_the_end_of_everything_pushed(steps in prop::collection::vec((0u64..80, 1usize..900), 1..200)) {
        let bounds = RingRetention { seconds: 300, frames: 12, bytes: 6_000 };
        let mut ring = FrameRing::new(7, 0, bounds);
        let mut pushed: Vec<(Duration, String)> = Vec::new();
        let mut now = START;
        for (wait, size) in steps {
            now += Duration::from_secs(wait);
            let text = format!("{}-{}", pushed.len(), "x".repeat(size));
            push(&mut ring, &text, now);
            pushed.push((now, text));
            ring.drop_expired(now, u64::MAX);
            prop_assert_eq!(ring.newest_seq() as usize, pushed.len());
            let kept = texts(&ring, ring.floor_seq());
            let expected: Vec<(u64, String)> =
                (1..).zip(pushed.iter()).skip(ring.floor_seq() as usize).map(|(seq, (_, text))| (seq, text.clone())).collect();
            prop_assert_eq!(&kept, &expected);
            let fresh = pushed.iter().rev().take_while(|(at, _)| *at + Duration::from_secs(300) >= now).count();
            prop_assert!(kept.len() <= fresh.min(12) && ring.size_bytes <= 6_000 && !kept.is_empty());
            // Nothing goes before a bound asks for it.
            if let Some((_, next)) = pushed.len().checked_sub(kept.len() + 1).map(|place| &pushed[place]) {
                let full = ring.size_bytes + next.len() + ENTRY_OVERHEAD_BYTES > 6_000;
                prop_assert!(kept.len() == fresh.min(12) || full);
            }
        }
    }
}
