//! The rules of the schedule under a virtual clock (D-115).

use super::*;
use proptest::prelude::*;

fn message(number: u64, sender: &str, arrived: i64) -> WaitingMessage {
    let trace_id = uuid::Uuid::from_u64_pair(7, number);
    let event = serde_json::json!({ "trace_id": trace_id, "sender_id": sender, "envelope": {},
        "timestamp": "2026-03-22T04:30:00.000Z" });
    WaitingMessage {
        cursor: Some(Cursor::from_log_seq(number)),
        event: serde_json::from_value(event).unwrap(),
        arrived: UnixMicros(arrived),
    }
}

/// A wake of the simulation: when it was, and the numbers and senders of its messages.
struct SimulatedWake {
    at: i64,
    messages: Vec<(u64, String)>,
}

/// Delivers messages at their times, and wakes whenever it is due until nothing waits.
fn simulate(max_wakes: u32, arrivals: &[(i64, String)]) -> Vec<SimulatedWake> {
    let mut schedule = WakeSchedule::new(max_wakes, Vec::new());
    let mut wakes = Vec::new();
    let mut arrivals = (1..).zip(arrivals).peekable();
    let mut now = UnixMicros(0);
    loop {
        let due = schedule.next_due(now);
        let next_arrival = arrivals.peek().map(|(_, (at, _))| UnixMicros(*at));
        let Some(next) = due.into_iter().chain(next_arrival).min() else {
            return wakes;
        };
        now = now.max(next);
        while let Some((number, (at, sender))) = arrivals.next_if(|(_, (at, _))| *at <= now.0) {
            schedule.add_message(message(number, sender, *at));
        }
        let batch = schedule.take_batch(now);
        if !batch.is_empty() {
            schedule.record_wake(now, &batch);
            let announced_wake = |message: &WaitingMessage| {
                (message.cursor.unwrap().seq, message.sender().to_owned())
            };
            wakes.push(SimulatedWake {
                at: now.0,
                messages: batch.iter().map(announced_wake).collect(),
            });
        }
    }
}

/// Arrivals in order: mostly close together, sometimes minutes apart.
fn arbitrary_arrivals() -> impl Strategy<Value = Vec<(i64, String)>> {
    let gap = prop_oneof![0..SECOND, 0..20 * SECOND, 0..900 * SECOND];
    let sender = prop::sample::select(vec!["a@x", "b@x", "c@x", "d@x"]);
    prop::collection::vec((gap, sender), 0..120).prop_map(|steps| {
        let mut at = 0;
        let arrive = |(gap, sender): (i64, &str)| {
            at += gap;
            (at, sender.to_owned())
        };
        steps.into_iter().map(arrive).collect()
    })
}

/// The most uses within any window of this length.
fn most_within(times: &[i64], window: i64) -> usize {
    let uses_from = |start: &i64| {
        let end = start + window;
        times
            .iter()
            .filter(|at| (*start..end).contains(*at))
            .count()
    };
    times.iter().map(uses_from).max().unwrap_or(0)
}

proptest! {
    #[test]
    fn every_message_is_told_once_within_the_pause_and_the_budgets(
        max_wakes in 1_u32..40, arrivals in arbitrary_arrivals(),
    ) {
        let wakes = simulate(max_wakes, &arrivals);
        let times: Vec<i64> = wakes.iter().map(|wake| wake.at).collect();
        for pair in times.windows(2) {
            prop_assert!(pair[1] - pair[0] >= WAKE_PAUSE, "{times:?}");
        }
        prop_assert!(most_within(&times, SESSION_WINDOW) <= max_wakes as usize, "{times:?}");
        for sender in ["a@x", "b@x", "c@x", "d@x"] {
            let is_of = |wake: &&SimulatedWake| wake.messages.iter().any(|(_, of)| of == sender);
            let times: Vec<i64> = wakes.iter().filter(is_of).map(|wake| wake.at).collect();
            prop_assert!(most_within(&times, SENDER_WINDOW) <= SENDER_WAKES, "{sender}: {times:?}");
        }
        let mut announced: Vec<u64> = wakes.iter().flat_map(|wake| &wake.messages).map(|(n, _)| *n).collect();
        announced.sort_unstable();
        prop_assert_eq!(announced, (1..=arrivals.len() as u64).collect::<Vec<_>>());
    }

    #[test]
    fn a_rested_session_is_woken_when_the_batch_is_complete(arrivals in arbitrary_arrivals()) {
        let wakes = simulate(SESSION_WAKES, &arrivals);
        if let Some((first, _)) = arrivals.first() {
            prop_assert_eq!(wakes[0].at, first + BATCH_WINDOW);
            let in_window = arrivals.iter().filter(|(at, _)| *at <= first + BATCH_WINDOW).count();
            prop_assert_eq!(wakes[0].messages.len(), in_window);
        }
    }
}

#[test]
fn a_burst_is_two_wakes_at_most() {
    let burst: Vec<(i64, String)> = (0..20).map(|n| (n * 100_000, "a@x".to_owned())).collect();
    let wakes = simulate(SESSION_WAKES, &burst);
    assert_eq!(wakes.len(), 2);
    assert_eq!(wakes[1].at - wakes[0].at, WAKE_PAUSE);
}

#[test]
fn a_sender_without_budget_does_not_hold_up_others() {
    let mut schedule = WakeSchedule::new(SESSION_WAKES, Vec::new());
    let mut now = UnixMicros(0);
    let mut spent = SpentBudgets::default();
    for number in 0..6 {
        schedule.add_message(message(number, "loud@x", now.0));
        now = schedule.next_due(now).unwrap();
        let batch = schedule.take_batch(now);
        let record = schedule.record_wake(now, &batch);
        spent = schedule.spent_budgets(now, &record);
        assert_eq!(spent.senders.is_empty(), number < 5, "after wake {number}");
    }
    assert_eq!(spent.senders, ["loud@x"]);
    schedule.add_message(message(6, "loud@x", now.0));
    let loud_due = schedule.next_due(now).unwrap();
    assert_eq!(
        loud_due.0,
        BATCH_WINDOW + SENDER_WINDOW,
        "when the first is old enough"
    );
    schedule.add_message(message(7, "quiet@x", now.0));
    now = schedule.next_due(now).unwrap();
    let batch = schedule.take_batch(now);
    assert_eq!(batch.len(), 1);
    assert_eq!(batch[0].sender(), "quiet@x");
    assert_eq!(schedule.waiting_count(), 1);
}

#[test]
fn the_next_process_of_a_session_has_the_same_budget() {
    let record = WakeRecord {
        at: 0,
        senders: vec!["a@x".into()],
    };
    let mut schedule = WakeSchedule::new(1, vec![record]);
    schedule.add_message(message(1, "b@x", SECOND));
    let due = schedule.next_due(UnixMicros(SECOND)).unwrap();
    assert_eq!(due.0, SESSION_WINDOW);
}

#[test]
fn a_clock_that_was_set_back_does_not_stop_the_wakes() {
    let record = WakeRecord {
        at: SESSION_WINDOW,
        senders: vec!["a@x".into()],
    };
    let mut schedule = WakeSchedule::new(SESSION_WAKES, vec![record]);
    schedule.add_message(message(1, "a@x", SESSION_WINDOW));
    let due = schedule.next_due(UnixMicros(0)).unwrap();
    assert_eq!(due.0, BATCH_WINDOW);
}
