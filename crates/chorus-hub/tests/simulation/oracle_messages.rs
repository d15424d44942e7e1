//! Nothing acknowledged is lost, doubled or reordered: messages, inboxes, channel lines.

use crate::history::History;
use crate::operation::{Acknowledgement, ClientRequest, Operation, OperationState};
use crate::oracle::{agent_row_id, query_number};
use crate::template::{CHANNEL_MEMBERS, HOOK};
use rusqlite::Connection;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// How often something may be there, by what the client was told.
pub fn check_count(operation: &Operation, count: usize, violations: &mut Vec<String>) {
    let problem = match (&operation.state, count) {
        (OperationState::Acknowledged, 0) => "was acknowledged and is lost",
        // Of several attempts one may be refused while another, whose answer was lost, takes effect.
        (OperationState::Refused(_), 1..) if operation.attempts == 1 => {
            "was refused and took effect"
        }
        (_, 2..) => "took effect more than once",
        (_, 0 | 1) => return,
    };
    violations.push(format!("{:?} {problem}", operation.request));
}

/// The sequences of the entries of a kind, by a text of their body.
fn sequences_by_text(
    connection: &Connection,
    kind: &str,
    field: &str,
) -> BTreeMap<String, Vec<i64>> {
    let mut statement = connection
        .prepare("select seq, body from log where kind = ?1 order by seq")
        .unwrap();
    let rows = statement
        .query_map([kind], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        })
        .unwrap();
    let mut found: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for row in rows {
        let (seq, body) = row.unwrap();
        let body: Value = serde_json::from_str(&body).unwrap_or_default();
        if let Some(text) = body.get(field).and_then(Value::as_str) {
            found.entry(text.to_owned()).or_default().push(seq);
        }
    }
    found
}

pub fn check_messages(connection: &Connection, history: &History, violations: &mut Vec<String>) {
    let stored = sequences_by_text(connection, "message", "original_text");
    let mut trace_ids = HashSet::new();
    let mut placed: Vec<(&Operation, i64)> = Vec::new();
    for operation in &history.operations {
        let ClientRequest::Send { text, receiver, .. } = &operation.request else {
            continue;
        };
        let seqs = stored.get(text).cloned().unwrap_or_default();
        check_count(operation, seqs.len(), violations);
        let own_ids: HashSet<&String> = operation
            .acknowledgements
            .iter()
            .filter_map(|acknowledgement| match acknowledgement {
                Acknowledgement::Sent { trace_id, .. } => Some(trace_id),
                Acknowledgement::Paid(_)
                | Acknowledgement::Job { .. }
                | Acknowledgement::Posted { .. } => None,
            })
            .collect();
        if own_ids.len() > 1 || own_ids.iter().any(|id| !trace_ids.insert((*id).clone())) {
            violations.push(format!(
                "{text} has the trace ids {own_ids:?}, or shares one"
            ));
        }
        if let (OperationState::Acknowledged, Some(seq)) = (&operation.state, seqs.first()) {
            placed.push((operation, *seq));
        }
        if *receiver == HOOK {
            check_webhook(operation, text, history, violations);
        }
    }
    check_order(&placed, violations);
}

/// What was acknowledged before something else was asked for comes before it in the log.
fn check_order(placed: &[(&Operation, i64)], violations: &mut Vec<String>) {
    for (earlier, earlier_seq) in placed {
        for (later, later_seq) in placed {
            let is_before = earlier
                .acknowledged_at
                .is_some_and(|at| at < later.started_at);
            if is_before && earlier_seq >= later_seq {
                violations.push(format!(
                    "order: {:?} was acknowledged before {:?} was sent, and comes after it",
                    earlier.request, later.request
                ));
            }
        }
    }
}

/// A message is posted to an endpoint once at most, and what is said to be delivered has arrived.
fn check_webhook(
    operation: &Operation,
    text: &str,
    history: &History,
    violations: &mut Vec<String>,
) {
    let network = history.environment.network.record.lock().unwrap();
    let arrivals: Vec<bool> = network
        .arrivals
        .iter()
        .filter(|arrival| arrival.body["envelope"]["original_text"] == text)
        .map(|arrival| arrival.accepted)
        .collect();
    if arrivals.len() > 1 {
        violations.push(format!("{text} was posted {} times", arrivals.len()));
    }
    let is_delivered = operation
        .acknowledgements
        .iter()
        .any(|one| matches!(one, Acknowledgement::Sent { outcome, .. } if outcome == "delivered"));
    if is_delivered && arrivals != [true] {
        violations.push(format!("{text} is said to be delivered, and is not"));
    }
}

/// Every reader has every entry of its inbox once, in order.
pub fn check_readers(connection: &Connection, history: &History, violations: &mut Vec<String>) {
    for reader in &history.readers {
        let id = agent_row_id(connection, reader.agent);
        let mut statement = connection
            .prepare("select seq from log where subject = ?1 and seq > ?2 order by seq")
            .unwrap();
        let expected: Vec<u64> = statement
            .query_map([id, history.stage.template.newest_seq as i64], |row| {
                row.get::<_, i64>(0)
            })
            .unwrap()
            .map(|seq| seq.unwrap() as u64)
            .collect();
        let seen = &reader.progress.lock().unwrap().seen;
        if *seen != expected {
            violations.push(format!(
                "inbox of a{}: read {seen:?}, not {expected:?}",
                reader.agent
            ));
        }
    }
}

/// Every line is in the channel once, and with every member at least once, in order.
pub fn check_channel(connection: &Connection, history: &History, violations: &mut Vec<String>) {
    let stored = sequences_by_text(connection, "said", "content");
    let mut lines: Vec<(i64, String)> = Vec::new();
    let mut placed: Vec<(&Operation, i64)> = Vec::new();
    for operation in &history.operations {
        let ClientRequest::PostChannel { text } = &operation.request else {
            continue;
        };
        let seqs = stored.get(text).cloned().unwrap_or_default();
        check_count(operation, seqs.len(), violations);
        let Some(seq) = seqs.first() else { continue };
        lines.push((*seq, text.clone()));
        if operation.state == OperationState::Acknowledged {
            placed.push((operation, *seq));
        }
        for acknowledgement in &operation.acknowledgements {
            if let Acknowledgement::Posted { cursor } = acknowledgement
                && *cursor != *seq as u64
            {
                violations.push(format!("{text} is at {seq}, not at {cursor}"));
            }
        }
    }
    check_order(&placed, violations);
    lines.sort();
    let lines: Vec<&String> = lines.iter().map(|(_, text)| text).collect();
    let network = history.environment.network.record.lock().unwrap();
    for member in CHANNEL_MEMBERS {
        let mut received: Vec<String> = Vec::new();
        for arrival in network
            .arrivals
            .iter()
            .filter(|one| one.path == member && one.accepted)
        {
            let backlog = arrival.body["backlog"].as_array().cloned();
            let messages = backlog.into_iter().flatten();
            for message in messages.chain([arrival.body["message"].clone()]) {
                let text = message["content"].as_str().unwrap_or_default().to_owned();
                if !received.contains(&text) {
                    received.push(text);
                }
            }
        }
        if received.iter().collect::<Vec<_>>() != lines {
            violations.push(format!("{member} got {received:?}, not {lines:?}"));
        }
    }
}

/// The counters that `/health` shows are those of the rows.
pub fn check_counters(connection: &Connection, violations: &mut Vec<String>) {
    for (counter, rows) in [
        ("stored", "kind = 'message'"),
        (
            "delivered",
            "via in ('sse', 'webhook') or (via = 'queued' and delivered_at is not null)",
        ),
        ("queued", "via = 'queued' and delivered_at is null"),
        ("failed", "via = 'failed'"),
    ] {
        let counted = query_number(connection, &format!("select {counter} from counters"));
        let actual = query_number(
            connection,
            &format!("select count(*) from log where {rows}"),
        );
        if counted != actual {
            violations.push(format!("counters: {counter} is {counted}, not {actual}"));
        }
    }
}
