//! The states of a job and the table of all transitions between them.

use chorus_wire::market::job::JobStatus;
use chorus_wire::string_enum;

string_enum! {
    /// The state of a job.
    JobState {
        /// Requested; the job is not stored before its budget is held.
        Requested "requested",
        /// On the board: the budget is held, and any agent with the skill may claim the job.
        Open "open",
        /// The budget is held, and the worker has not accepted the job yet.
        Held "held",
        /// The worker has the job.
        Dispatched "dispatched",
        /// The worker waits for the requester's answer to its question.
        InputRequired "input-required",
        /// The worker delivered, and the requester may still reject the delivery.
        Delivered "delivered",
        /// The worker reported a result and is paid.
        Done "done",
        /// The worker failed or refused, or its delivery was rejected; the budget is refunded.
        Failed "failed",
        /// The requester cancelled the job before a result came.
        Cancelled "cancelled",
        /// No result came before the deadline.
        Expired "expired",
    }
}

/// An event that moves a job from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobEvent {
    Hold,
    /// The job is put on the board.
    Publish,
    Claim,
    Dispatch,
    /// The worker asks a question.
    Ask,
    /// The requester answers, and the worker gets the job again.
    Answer,
    /// Another worker gets the job.
    Reassign,
    /// The job goes back to the board.
    Return,
    Deliver,
    Succeed,
    Fail,
    Cancel,
    Expire,
}

impl JobState {
    /// The states that the store holds.
    pub const STORED: [Self; 9] = [
        Self::Open,
        Self::Held,
        Self::Dispatched,
        Self::InputRequired,
        Self::Delivered,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
    ];

    /// The state after `event`; `None` when the event is not allowed in this state. No event leaves
    /// a final state, so the first result stands.
    pub const fn next_state(self, event: JobEvent) -> Option<Self> {
        match event {
            JobEvent::Hold => self.or_none(Self::Held, &[Self::Requested]),
            JobEvent::Publish => self.or_none(Self::Open, &[Self::Requested]),
            JobEvent::Claim => self.or_none(Self::Dispatched, &[Self::Open]),
            JobEvent::Dispatch => self.or_none(Self::Dispatched, &[Self::Held]),
            JobEvent::Ask => self.or_none(Self::InputRequired, &[Self::Held, Self::Dispatched]),
            JobEvent::Answer => self.or_none(Self::Held, &[Self::InputRequired]),
            JobEvent::Reassign => self.or_none(Self::Held, &Self::WITH_WORKER),
            JobEvent::Return => self.or_none(Self::Open, &Self::WITH_WORKER),
            JobEvent::Deliver => self.or_none(Self::Delivered, &Self::WITH_WORKER),
            // A worker may report a result before its acceptance of the job is stored.
            JobEvent::Succeed => self.or_none(Self::Done, &Self::FOR_RESULT),
            JobEvent::Fail => self.or_none(Self::Failed, &Self::FOR_RESULT),
            // A requester that has seen the delivery approves or rejects it.
            JobEvent::Cancel => self.or_none(Self::Cancelled, &Self::UNDELIVERED),
            JobEvent::Expire => self.or_none(Self::Expired, &Self::UNDELIVERED),
        }
    }

    /// A worker has the job, or is about to get it.
    const WITH_WORKER: [Self; 3] = [Self::Held, Self::Dispatched, Self::InputRequired];
    const FOR_RESULT: [Self; 4] = [
        Self::Held,
        Self::Dispatched,
        Self::InputRequired,
        Self::Delivered,
    ];
    const UNDELIVERED: [Self; 4] = [
        Self::Open,
        Self::Held,
        Self::Dispatched,
        Self::InputRequired,
    ];

    /// `next` when this state is one of those that the event is allowed in.
    const fn or_none(self, next: Self, allowed: &[Self]) -> Option<Self> {
        let mut index = 0;
        while index < allowed.len() {
            if allowed[index] as u8 == self as u8 {
                return Some(next);
            }
            index += 1;
        }
        None
    }

    /// The status in the jobs document (JOB-06).
    pub const fn wire_status(self) -> JobStatus {
        match self {
            Self::Requested
            | Self::Open
            | Self::Held
            | Self::Dispatched
            | Self::InputRequired
            | Self::Delivered => JobStatus::Pending,
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

    const EVENTS: [JobEvent; 13] = [
        JobEvent::Hold,
        JobEvent::Publish,
        JobEvent::Claim,
        JobEvent::Dispatch,
        JobEvent::Ask,
        JobEvent::Answer,
        JobEvent::Reassign,
        JobEvent::Return,
        JobEvent::Deliver,
        JobEvent::Succeed,
        JobEvent::Fail,
        JobEvent::Cancel,
        JobEvent::Expire,
    ];

    #[test]
    fn no_event_leaves_a_final_state_and_every_open_job_can_reach_one() {
        for &state in JobState::ALL {
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
            let expected = match state {
                JobState::Held | JobState::Dispatched | JobState::InputRequired => 4,
                // On the board there is no worker, and after a delivery there is only its judgement.
                JobState::Open | JobState::Delivered => 2,
                JobState::Requested
                | JobState::Done
                | JobState::Failed
                | JobState::Cancelled
                | JobState::Expired => 0,
            };
            assert_eq!(final_transitions, expected, "{state:?}");
        }
    }

    #[test]
    fn only_a_done_job_has_the_status_success() {
        for &state in JobState::ALL {
            assert_eq!(
                state.wire_status() == JobStatus::Success,
                state == JobState::Done
            );
            assert_eq!(state.wire_status() == JobStatus::Pending, !is_final(state));
            assert_eq!(JobState::parse(state.as_str()), Some(state));
        }
    }
}
