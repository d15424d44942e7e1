//! The states of a job and every way from one to another: there is no other file that says so.

use chorus_wire::market::job::Status;

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    /// Asked for; nothing is kept of it before its budget is held.
    Requested,
    /// Its budget is held, and its worker has not taken it yet.
    Held,
    /// The worker has it.
    Dispatched,
    /// The worker's result stands, and it is paid.
    Done,
    /// The worker failed or refused; the budget went back.
    Failed,
    /// The orchestrator took it back before a result came.
    Cancelled,
    /// No result came in time.
    Expired,
}

/// What can happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Hold,
    Dispatch,
    Succeed,
    Fail,
    Cancel,
    Expire,
}

impl State {
    pub const ALL: [Self; 7] = [
        Self::Requested,
        Self::Held,
        Self::Dispatched,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
    ];
    /// Those that are written down.
    pub const KEPT: [Self; 6] = [
        Self::Held,
        Self::Dispatched,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
    ];

    /// Where `event` leads; `None` when it cannot happen here. Nothing leads out of an end, so the first result stands.
    pub const fn after(self, event: Event) -> Option<Self> {
        match (self, event) {
            (Self::Requested, Event::Hold) => Some(Self::Held),
            (Self::Held, Event::Dispatch) => Some(Self::Dispatched),
            // A worker may answer before its taking the job is written down.
            (Self::Held | Self::Dispatched, Event::Succeed) => Some(Self::Done),
            (Self::Held | Self::Dispatched, Event::Fail) => Some(Self::Failed),
            (Self::Held | Self::Dispatched, Event::Cancel) => Some(Self::Cancelled),
            (Self::Held | Self::Dispatched, Event::Expire) => Some(Self::Expired),
            (
                Self::Requested,
                Event::Dispatch | Event::Succeed | Event::Fail | Event::Cancel | Event::Expire,
            )
            | (Self::Held | Self::Dispatched, Event::Hold)
            | (Self::Dispatched, Event::Dispatch)
            | (
                Self::Done | Self::Failed | Self::Cancelled | Self::Expired,
                Event::Hold
                | Event::Dispatch
                | Event::Succeed
                | Event::Fail
                | Event::Cancel
                | Event::Expire,
            ) => None,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Held => "held",
            Self::Dispatched => "dispatched",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// The document's word for it (JOB-06).
    pub const fn status(self) -> Status {
        match self {
            Self::Requested | Self::Held | Self::Dispatched => Status::Pending,
            Self::Done => Status::Success,
            Self::Failed | Self::Cancelled | Self::Expired => Status::Failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_end(state: State) -> bool {
        EVENTS.into_iter().all(|event| state.after(event).is_none())
    }

    const EVENTS: [Event; 6] = [
        Event::Hold,
        Event::Dispatch,
        Event::Succeed,
        Event::Fail,
        Event::Cancel,
        Event::Expire,
    ];

    #[test]
    fn nothing_leads_out_of_an_end_and_every_job_can_come_to_one() {
        for state in State::ALL {
            let ways = EVENTS.into_iter().filter_map(|event| state.after(event));
            let ended = matches!(
                state,
                State::Done | State::Failed | State::Cancelled | State::Expired
            );
            assert_eq!(ways.count() == 0, ended, "{state:?}");
            let ends = EVENTS
                .into_iter()
                .filter(|event| state.after(*event).is_some_and(is_end))
                .count();
            let open = matches!(state, State::Held | State::Dispatched);
            assert_eq!(ends, if open { 4 } else { 0 }, "{state:?}");
        }
    }

    #[test]
    fn only_a_success_is_a_success() {
        for state in State::ALL {
            assert_eq!(state.status() == Status::Success, state == State::Done);
            assert_eq!(state.status() == Status::Pending, !is_end(state));
            assert_eq!(State::parse(state.as_str()), Some(state));
        }
    }
}
