//! The states of a job and the table of all transitions between them.

use chorus_wire::market::job::JobStatus;

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum JobState {
    /// Requested; the job is not stored before its budget is held.
    Requested,
    /// The budget is held, and the worker has not accepted the job yet.
    Held,
    /// The worker has the job.
    Dispatched,
    /// The worker reported a result and is paid.
    Done,
    /// The worker failed or refused; the budget is refunded.
    Failed,
    /// The requester cancelled the job before a result came.
    Cancelled,
    /// No result came before the deadline.
    Expired,
}

/// An event that moves a job from one state to another.
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
    /// The states that the store holds.
    pub const STORED: [Self; 6] = [
        Self::Held,
        Self::Dispatched,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
    ];

    /// The state after `event`; `None` when the event is not allowed in this state. No event leaves
    /// a final state, so the first result stands.
    pub const fn next_state(self, event: JobEvent) -> Option<Self> {
        match (self, event) {
            (Self::Requested, JobEvent::Hold) => Some(Self::Held),
            (Self::Held, JobEvent::Dispatch) => Some(Self::Dispatched),
            // A worker may report a result before its acceptance of the job is stored.
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

    /// The status in the jobs document (JOB-06).
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

    fn is_final(state: JobState) -> bool {
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
    fn no_event_leaves_a_final_state_and_every_open_job_can_reach_one() {
        for state in JobState::ALL {
            let transitions = EVENTS
                .into_iter()
                .filter_map(|event| state.next_state(event));
            let expect_final = matches!(
                state,
                JobState::Done | JobState::Failed | JobState::Cancelled | JobState::Expired
            );
            assert_eq!(transitions.count() == 0, expect_final, "{state:?}");
            let final_transitions = EVENTS
                .into_iter()
                .filter(|event| state.next_state(*event).is_some_and(is_final))
                .count();
            let is_open = matches!(state, JobState::Held | JobState::Dispatched);
            assert_eq!(final_transitions, if is_open { 4 } else { 0 }, "{state:?}");
        }
    }

    #[test]
    fn only_a_done_job_has_the_status_success() {
        for state in JobState::ALL {
            assert_eq!(
                state.wire_status() == JobStatus::Success,
                state == JobState::Done
            );
            assert_eq!(state.wire_status() == JobStatus::Pending, !is_final(state));
            assert_eq!(JobState::parse(state.as_str()), Some(state));
        }
    }
}
