//! Messages under load, with streams that break off and resume: none lost, duplicated or out of order.

use crate::support::actors::{Agent, texts};
use crate::support::hub::Hub;
use crate::support::seeded_random::SeededRandom;

const SENDERS: usize = 6;
const EACH: usize = 40;
const READERS: usize = 3;

/// Reads an inbox to its end, disconnecting after a few events and resuming; every event's (cursor, text).
async fn read(agent: Agent, total: usize, mut random: SeededRandom) -> Vec<(u64, String)> {
    let mut seen: Vec<(u64, String)> = Vec::new();
    while seen.len() < total {
        let cursor = seen.last().map_or(0, |(cursor, _)| *cursor);
        let mut stream = agent.inbox_after(&cursor.to_string()).await;
        for _ in 0..=random.below(30) {
            if seen.len() == total {
                break;
            }
            let event = stream.next("message").await;
            seen.push((event.cursor(), event.message_text().to_owned()));
        }
    }
    seen
}

async fn send(from: Agent, to: Vec<Agent>, sender: usize) {
    for number in 0..EACH {
        for receiver in &to {
            let answer = from.send(&receiver.id, &format!("{sender}-{number}")).await;
            assert!(matches!(answer.status, 200 | 202), "{answer:?}");
        }
    }
}

async fn whole_history(agent: &Agent) -> Vec<(u64, String)> {
    let rows = agent.whole_history(100).await;
    rows.iter()
        .map(|row| row["id"].as_u64().unwrap())
        .zip(texts(&rows))
        .collect()
}

async fn all_agents_send(hub: &Hub) {
    let mut receivers = Vec::new();
    for number in 0..3 {
        receivers.push(hub.agent(&format!("receiver-{number}")).await);
    }
    let (mut readers, mut senders) = (Vec::new(), Vec::new());
    for (place, receiver) in receivers.iter().enumerate() {
        for reader in 0..READERS {
            let random = SeededRandom(0x9e37_79b9 + (place * READERS + reader) as u64);
            readers.push((
                place,
                tokio::spawn(read(receiver.clone(), SENDERS * EACH, random)),
            ));
        }
    }
    for sender in 0..SENDERS {
        let agent = hub.agent(&format!("sender-{sender}")).await;
        senders.push(tokio::spawn(send(agent, receivers.clone(), sender)));
    }
    for sender in senders {
        sender.await.unwrap();
    }
    let mut histories = Vec::new();
    for receiver in &receivers {
        histories.push(whole_history(receiver).await);
    }
    for (place, reader) in readers {
        assert_eq!(
            reader.await.unwrap(),
            histories[place],
            "a stream and the history differ"
        );
    }
    for history in &histories {
        assert_eq!(history.len(), SENDERS * EACH);
        assert!(history.is_sorted_by(|a, b| a.0 < b.0), "ids grow");
        for sender in 0..SENDERS {
            let mine: Vec<&str> = history
                .iter()
                .map(|(_, text)| text.as_str())
                .filter(|t| t.starts_with(&format!("{sender}-")))
                .collect();
            let sent: Vec<String> = (0..EACH)
                .map(|number| format!("{sender}-{number}"))
                .collect();
            assert_eq!(mine, sent, "what one sender said in turn is kept in turn");
        }
    }
}

story!(
    streams_that_break_off_and_resume_hear_everything_once_and_in_order,
    |hub| async {
        // failure 15
        all_agents_send(&hub).await;
    }
);
