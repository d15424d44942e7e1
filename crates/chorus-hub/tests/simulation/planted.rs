//! Planted faults: each breaks one promise behind the hubs' back, so that a test sees the oracle notice.

use crate::history::History;
use crate::network::Arrival;
use crate::operation::{ClientRequest, OperationState};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedFault {
    /// A message that was acknowledged is taken out of the log.
    LoseMessage,
    /// A commit is confirmed, and has no effect.
    ForgetCommit,
    /// A message is posted to its endpoint a second time.
    RepeatPost,
    /// A reader gets an event a second time.
    RepeatEvent,
    /// A reader misses an event.
    LoseEvent,
    /// A message is in the log a second time.
    DoubleMessage,
    /// Two messages change places.
    SwapMessages,
    /// An account has a hundredth less.
    LoseCent,
    /// A payment is posted a second time.
    DoublePayment,
    /// The leases of the outbox are given to others while posts are in flight.
    BreakLeases,
    /// One hub no longer hears of the streams of the other.
    DeafHub,
    /// A hub says that a channel line is in the channel, and it is not.
    LoseLine,
    /// Two agents have one job of the board.
    DoubleClaim,
    /// A delivery was approved, and the worker's pay is taken back.
    LoseApproval,
}

impl PlantedFault {
    pub const ALL: [Self; 14] = [
        Self::LoseMessage,
        Self::ForgetCommit,
        Self::RepeatPost,
        Self::RepeatEvent,
        Self::LoseEvent,
        Self::DoubleMessage,
        Self::SwapMessages,
        Self::LoseCent,
        Self::DoublePayment,
        Self::BreakLeases,
        Self::DeafHub,
        Self::LoseLine,
        Self::DoubleClaim,
        Self::LoseApproval,
    ];

    pub fn needs_peers(self) -> bool {
        matches!(self, Self::BreakLeases | Self::DeafHub)
    }

    /// A word of the violation that the oracle must report.
    pub fn expected_violation(self) -> &'static str {
        match self {
            Self::LoseMessage | Self::LoseLine | Self::ForgetCommit => "is lost",
            Self::RepeatPost => "was posted 2 times",
            Self::RepeatEvent | Self::LoseEvent => "inbox of",
            Self::DoubleMessage | Self::DoublePayment => "more than once",
            Self::SwapMessages => "order",
            Self::LoseCent => "ledger",
            Self::BreakLeases | Self::DoubleClaim => "lease",
            Self::LoseApproval => "although its end was acknowledged",
            Self::DeafHub => "presence",
        }
    }
}

/// Plants a fault that takes effect while hubs work; called at every step of the second half.
pub fn plant_under_way(history: &History, fault: PlantedFault) {
    match fault {
        PlantedFault::BreakLeases if history.environment.network.in_flight_count() > 0 => {
            run(history, "update outbox set leased = 0, due_at = 0");
        }
        PlantedFault::DeafHub => {
            if let (Some(bus), Some(Some(running))) =
                (&history.environment.bus, history.hubs.first())
                && let Some(link) = running.node.link_id()
            {
                bus.deafen_link(link);
            }
        }
        PlantedFault::ForgetCommit => history.environment.server.forget_next_commit(),
        PlantedFault::BreakLeases
        | PlantedFault::RepeatPost
        | PlantedFault::RepeatEvent
        | PlantedFault::LoseEvent
        | PlantedFault::LoseMessage
        | PlantedFault::DoubleMessage
        | PlantedFault::SwapMessages
        | PlantedFault::LoseCent
        | PlantedFault::DoublePayment
        | PlantedFault::LoseLine
        | PlantedFault::DoubleClaim
        | PlantedFault::LoseApproval => {}
    }
}

/// Plants a fault in what the hubs left behind, before the oracle looks.
pub fn plant_at_end(history: &History, fault: PlantedFault) {
    match fault {
        PlantedFault::LoseMessage => {
            if let Some(text) = find_acknowledged(history) {
                let sql =
                    format!("delete from log where kind = 'message' and body like '%\"{text}\"%'");
                run(history, &sql);
            }
        }
        PlantedFault::DoubleMessage => run(
            history,
            "insert into log (seq, subject, kind, actor, at, body, via)
             select (select max(seq) + 1 from log), subject, kind, actor, (select max(at) + 1 from log), body, via
             from log where kind = 'message' order by seq desc limit 1",
        ),
        PlantedFault::SwapMessages => run(
            history,
            "update log set body = case seq
                when (select min(seq) from log where kind = 'message')
                then (select body from log where seq = (select max(seq) from log where kind = 'message'))
                else (select body from log where seq = (select min(seq) from log where kind = 'message')) end
             where seq in ((select min(seq) from log where kind = 'message'), (select max(seq) from log where kind = 'message'))",
        ),
        PlantedFault::LoseCent => run(
            history,
            "update accounts set balance = balance - 1 where id = (select max(id) from accounts where id % 2 = 0)",
        ),
        PlantedFault::DoublePayment => run(
            history,
            "insert into postings (id, kind, debit, credit, amount, payer, payee, job_id, note, at)
             select (select max(id) + 1 from postings), kind, debit, credit, amount, payer, payee, job_id, note, at
             from postings where kind = 'transfer' limit 1",
        ),
        PlantedFault::LoseLine => run(history, "delete from log where kind = 'said'"),
        PlantedFault::DoubleClaim => run(
            history,
            "insert into job_updates (job, n, kind, agent, at)
             select u.job, max(u.n) + 1, 'claimed', 1 + j.worker, max(u.at) from job_updates u join jobs j on j.id = u.job
             where j.board = 1 and j.state = 'done' group by u.job",
        ),
        PlantedFault::LoseApproval => run(
            history,
            "update jobs set state = 'failed' where state = 'done' and approve_ms is not null",
        ),
        PlantedFault::RepeatPost => repeat_post(history),
        PlantedFault::RepeatEvent => {
            for reader in &history.readers {
                let seen = &mut reader.progress.lock().unwrap().seen;
                seen.extend(seen.last().copied());
            }
        }
        PlantedFault::LoseEvent => {
            for reader in &history.readers {
                reader.progress.lock().unwrap().seen.pop();
            }
        }
        PlantedFault::BreakLeases | PlantedFault::DeafHub | PlantedFault::ForgetCommit => {}
    }
}

fn repeat_post(history: &History) {
    let arrivals = &mut history.environment.network.record.lock().unwrap().arrivals;
    let of_message = |arrival: &&Arrival| arrival.path.starts_with("/hook/");
    let repeated = arrivals.iter().find(of_message).cloned();
    arrivals.extend(repeated);
}

/// The text of a message that its sender knows to be stored.
fn find_acknowledged(history: &History) -> Option<String> {
    let mut acknowledged = history
        .operations
        .iter()
        .filter(|operation| operation.state == OperationState::Acknowledged);
    acknowledged.find_map(|operation| match &operation.request {
        ClientRequest::Send { text, .. } => Some(text.clone()),
        ClientRequest::Pay { .. }
        | ClientRequest::RequestJob { .. }
        | ClientRequest::ReportJob { .. }
        | ClientRequest::CancelJob { .. }
        | ClientRequest::OfferJob { .. }
        | ClientRequest::ClaimJob { .. }
        | ClientRequest::DeclineJob { .. }
        | ClientRequest::JudgeJob { .. }
        | ClientRequest::PostChannel { .. } => None,
    })
}

/// Without an effect while a hub writes: then the next step tries again.
fn run(history: &History, sql: &str) {
    let connection = &history.stage.database;
    connection.busy_timeout(Duration::ZERO).unwrap();
    if let Err(error) = connection.execute_batch(sql) {
        let code = error.sqlite_error_code();
        assert_eq!(code, Some(rusqlite::ErrorCode::DatabaseBusy), "{error}");
    }
}
