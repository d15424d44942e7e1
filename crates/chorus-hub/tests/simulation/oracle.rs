//! The oracle: what must be true of every history, whatever went wrong in it.

use crate::history::History;
use crate::node::OPERATOR_KEY;
use crate::operation::OperationState;
use crate::template::agent_name;
use crate::{oracle_jobs, oracle_market, oracle_messages};
use chorus_hub::{identity, lifecycle, ops};
use rusqlite::Connection;

/// The number that a query yields.
pub fn query_number(connection: &Connection, sql: &str) -> i64 {
    connection
        .prepare_cached(sql)
        .unwrap()
        .query_row([], |row| row.get::<_, Option<i64>>(0))
        .unwrap()
        .unwrap_or(0)
}

/// Whether nothing is under way: no request, no delivery, no job, no event that a reader has not got.
pub fn is_settled(history: &History) -> bool {
    let is_quiet = history
        .operations
        .iter()
        .all(|operation| operation.state != OperationState::Open && operation.calls.is_empty())
        && history
            .hubs
            .iter()
            .all(|place| place.as_ref().is_some_and(|one| one.node.hub().is_some()))
        && history.readers.iter().all(|reader| reader.is_open())
        && history.environment.network.in_flight_count() == 0;
    is_quiet && {
        let connection = &history.stage.database;
        count_unfinished(connection) == [0; 3] && are_readers_done(history, connection)
    }
}

/// Posts that are owed, messages without an outcome, and jobs without an end.
fn count_unfinished(connection: &Connection) -> [i64; 3] {
    [
        "select count(*) from outbox",
        "select count(*) from log where via = 'pending'",
        "select count(*) from jobs where ended_at is null",
    ]
    .map(|sql| query_number(connection, sql))
}

fn are_readers_done(history: &History, connection: &Connection) -> bool {
    history.readers.iter().all(|reader| {
        let newest = query_number(
            connection,
            &format!(
                "select max(seq) from log where subject = {}",
                agent_row_id(connection, reader.agent)
            ),
        );
        reader.progress.lock().unwrap().cursor as i64 >= newest
    })
}

pub fn agent_row_id(connection: &Connection, agent: usize) -> i64 {
    let sql = format!(
        "select id from principals where agent_id = '{}'",
        agent_name(agent)
    );
    query_number(connection, &sql)
}

pub fn describe_unsettled(history: &History) -> String {
    let open: Vec<String> = history
        .operations
        .iter()
        .filter(|operation| operation.state == OperationState::Open)
        .map(|operation| format!("{:?}", operation.request))
        .collect();
    let connection = &history.stage.database;
    let readers: Vec<bool> = history.readers.iter().map(|one| one.is_open()).collect();
    let hubs: Vec<bool> = history
        .hubs
        .iter()
        .map(|place| place.as_ref().is_some_and(|one| one.node.hub().is_some()))
        .collect();
    format!(
        "open requests {open:?}; posts, pending messages, jobs {:?}; open readers {readers:?}, all read: {}; open hubs {hubs:?}; \
         in flight {}",
        count_unfinished(connection),
        are_readers_done(history, connection),
        history.environment.network.in_flight_count()
    )
}

pub fn check(history: &mut History) {
    let connection = &history.stage.database;
    let mut violations = Vec::new();
    check_log(connection, history, &mut violations);
    oracle_messages::check_messages(connection, history, &mut violations);
    oracle_messages::check_readers(connection, history, &mut violations);
    oracle_messages::check_channel(connection, history, &mut violations);
    oracle_messages::check_counters(connection, &mut violations);
    oracle_market::check_ledger(connection, &mut violations);
    oracle_market::check_payments(connection, history, &mut violations);
    oracle_market::check_totals(connection, &mut violations);
    oracle_jobs::check_jobs(connection, history, &mut violations);
    check_presence(history, &mut violations);
    let network = history.environment.network.record.lock().unwrap();
    for overlap in &network.overlaps {
        violations.push(format!(
            "lease: {overlap} was posted twice at the same time"
        ));
    }
    drop(network);
    history.violations.append(&mut violations);
}

/// Sequences have no gap and no repetition, and times strictly increase (D-03), also when the clock leaps.
fn check_log(connection: &Connection, history: &History, violations: &mut Vec<String>) {
    let mut statement = connection
        .prepare("select seq, at from log where seq >= ?1 order by seq")
        .unwrap();
    let rows: Vec<(i64, i64)> = statement
        .query_map([history.stage.template.newest_seq as i64], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for pair in rows.windows(2) {
        if pair[1].0 != pair[0].0 + 1 {
            violations.push(format!("log: {} follows {}", pair[1].0, pair[0].0));
        }
        if pair[1].1 <= pair[0].1 {
            violations.push(format!(
                "log: {} is not later than {}",
                pair[1].0, pair[0].0
            ));
        }
    }
}

/// In the end every hub knows which inboxes are open, here or at its peer.
fn check_presence(history: &History, violations: &mut Vec<String>) {
    let open_count = history.readers.iter().filter(|one| one.is_open()).count() as u64;
    for running in history.hubs.iter().flatten() {
        let Some(hub) = running.node.hub() else {
            continue;
        };
        let operator = running.node.run(identity::authenticate(
            hub.identity(),
            Some(OPERATOR_KEY),
            None,
        ));
        let operator = operator.unwrap();
        for reader in &history.readers {
            let name = agent_name(reader.agent);
            let record = running
                .node
                .run(lifecycle::get_agent_record(&operator, &hub, &name));
            let is_online = record.unwrap().online;
            if is_online != reader.is_open() {
                violations.push(format!(
                    "presence: hub {} says that {name} is online: {is_online}",
                    running.run
                ));
            }
        }
        let health = running.node.run(ops::read_health(&hub)).unwrap();
        if health.inbox_connections != open_count {
            violations.push(format!(
                "presence: hub {} counts {} open inboxes, not {open_count}",
                running.run, health.inbox_connections
            ));
        }
    }
}

/// Everything that a history left behind, line by line.
pub fn list_traces(history: &History) -> Vec<String> {
    let mut traces = Vec::new();
    let connection = &history.stage.database;
    let mut statement = connection
        .prepare("select seq, subject, kind, actor, at, body, via from log order by seq")
        .unwrap();
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let values: Vec<rusqlite::types::Value> =
            (0..7).map(|column| row.get(column).unwrap()).collect();
        traces.push(format!("{values:?}"));
    }
    for operation in &history.operations {
        traces.push(format!(
            "{:?} {:?} {:?} {} {:?}",
            operation.request,
            operation.state,
            operation.acknowledgements,
            operation.attempts,
            operation.acknowledged_at
        ));
    }
    for reader in &history.readers {
        let seen = &reader.progress.lock().unwrap().seen;
        traces.push(format!("a{} read {seen:?}", reader.agent));
    }
    let network = history.environment.network.record.lock().unwrap();
    let arrivals = network.arrivals.iter();
    traces.extend(arrivals.map(|arrival| format!("{} {}", arrival.path, arrival.accepted)));
    traces
}
