//! The states of a job and every way from one to another: there is no other file that says so.

use chorus_wire::market::job::JobStatus;

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum JobState {
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
pub(crate) enum JobEvent {
    Hold,
    Dispatch,
    Succeed,
    Fail,
    Cancel,
    Expire,
}

impl JobState {
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
    pub const STORED: [Self; 6] = [
        Self::Held,
        Self::Dispatched,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
    ];

    /// Where `event` leads; `None` when it cannot happen here. Nothing leads out of an end, so the first result stands.
    pub const fn next_state(self, event: JobEvent) -> Option<Self> {
        match (self, event) {
            (Self::Requested, JobEvent::Hold) => Some(Self::Held),
            (Self::Held, JobEvent::Dispatch) => Some(Self::Dispatched),
            // A worker may answer before its taking the job is written down.
            (Self::Held | Self::Dispatched, JobEvent::Succeed) => Some(Self::Done),
            (Self::Held | Self::Dispatched, JobEvent::Fail) => Some(Self::Failed),
            (Self::Held | Self::Dispatched, JobEvent::Cancel) => Some(Self::Cancelled),
            (Self::Held | Self::Dispatched, JobEvent::Expire) => Some(Self::Expired),
            (
                Self::Requested,
                JobEvent::Dispatch
                | JobEvent::Succeed
                | JobEvent::Fail
                | JobEvent::Cancel
                | JobEvent::Expire,
            )
            | (Self::Held | Self::Dispatched, JobEvent::Hold)
            | (Self::Dispatched, JobEvent::Dispatch)
            | (
                Self::Done | Self::Failed | Self::Cancelled | Self::Expired,
                JobEvent::Hold
                | JobEvent::Dispatch
                | JobEvent::Succeed
                | JobEvent::Fail
                | JobEvent::Cancel
                | JobEvent::Expire,
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
    pub const fn wire_status(self) -> JobStatus {
        match self {
            Self::Requested | Self::Held | Self::Dispatched => JobStatus::Pending,
            Self::Done => JobStatus::Success,
            Self::Failed | Self::Cancelled | Self::Expired => JobStatus::Failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_end(state: JobState) -> bool {
        EVENTS
            .into_iter()
            .all(|event| state.next_state(event).is_none())
    }

    const EVENTS: [JobEvent; 6] = [
        JobEvent::Hold,
        JobEvent::Dispatch,
        JobEvent::Succeed,
        JobEvent::Fail,
        JobEvent::Cancel,
        JobEvent::Expire,
    ];

    #[test]
    fn nothing_leads_out_of_an_end_and_every_job_can_come_to_one() {
        for state in JobState::ALL {
            let ways = EVENTS
                .into_iter()
                .filter_map(|event| state.next_state(event));
            let ended = matches!(
                state,
                JobState::Done | JobState::Failed | JobState::Cancelled | JobState::Expired
            );
            assert_eq!(ways.count() == 0, ended, "{state:?}");
            let ends = EVENTS
                .into_iter()
                .filter(|event| state.next_state(*event).is_some_and(is_end))
                .count();
            let open = matches!(state, JobState::Held | JobState::Dispatched);
            assert_eq!(ends, if open { 4 } else { 0 }, "{state:?}");
        }
    }

    #[test]
    fn only_a_success_is_a_success() {
        for state in JobState::ALL {
            assert_eq!(
                state.wire_status() == JobStatus::Success,
                state == JobState::Done
            );
            assert_eq!(state.wire_status() == JobStatus::Pending, !is_end(state));
            assert_eq!(JobState::parse(state.as_str()), Some(state));
        }
    }
}
