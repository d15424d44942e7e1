//! What clients ask of the hubs, and what they have been answered.

use chorus_wire::{Error, ErrorCode};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request of one agent. The texts and ids are unique in a history, so that the oracle finds them again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientRequest {
    Send {
        sender: usize,
        receiver: usize,
        text: String,
        /// Whether it has an idempotency key, so that it may be repeated.
        keyed: bool,
    },
    Pay {
        payer: usize,
        payee: usize,
        transfer_id: String,
        cents: i64,
    },
    RequestJob {
        requester: usize,
        job_id: String,
        skill: &'static str,
        has_callback: bool,
    },
    ReportJob {
        worker: usize,
        job_id: String,
    },
    CancelJob {
        requester: usize,
        job_id: String,
    },
    /// Puts a job on the board.
    OfferJob {
        requester: usize,
        job_id: String,
        /// Whether the requester judges the delivery before it pays.
        needs_approval: bool,
        deadline_ms: u64,
    },
    ClaimJob {
        claimer: usize,
        job_id: String,
    },
    DeclineJob {
        worker: usize,
        job_id: String,
    },
    /// Approves or rejects a delivery.
    JudgeJob {
        requester: usize,
        job_id: String,
        approves: bool,
    },
    PostChannel {
        text: String,
    },
}

impl ClientRequest {
    /// The agent whose key it comes with.
    pub fn agent(&self) -> usize {
        match self {
            Self::Send { sender, .. } => *sender,
            Self::Pay { payer, .. } => *payer,
            Self::RequestJob { requester, .. }
            | Self::CancelJob { requester, .. }
            | Self::OfferJob { requester, .. }
            | Self::JudgeJob { requester, .. } => *requester,
            Self::ReportJob { worker, .. } | Self::DeclineJob { worker, .. } => *worker,
            Self::ClaimJob { claimer, .. } => *claimer,
            // The owner of the channel.
            Self::PostChannel { .. } => 0,
        }
    }

    /// The job that it is about.
    pub fn job_id(&self) -> Option<&str> {
        match self {
            Self::RequestJob { job_id, .. }
            | Self::ReportJob { job_id, .. }
            | Self::CancelJob { job_id, .. }
            | Self::OfferJob { job_id, .. }
            | Self::ClaimJob { job_id, .. }
            | Self::DeclineJob { job_id, .. }
            | Self::JudgeJob { job_id, .. } => Some(job_id),
            Self::Send { .. } | Self::Pay { .. } | Self::PostChannel { .. } => None,
        }
    }
}

/// What a client learns from an acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acknowledgement {
    Sent {
        trace_id: String,
        outcome: String,
    },
    Paid(String),
    /// The state of the job.
    Job {
        state: String,
    },
    Posted {
        cursor: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationState {
    Open,
    Acknowledged,
    /// The hub said no; nothing happened.
    Refused(ErrorCode),
    /// The client gave up without an answer: it may have happened.
    Unknown,
}

pub struct Operation {
    pub request: ClientRequest,
    pub state: OperationState,
    pub calls: Vec<ClientCall>,
    pub attempts: u32,
    /// Numbers of the history's events, which order what clients saw.
    pub started_at: u64,
    pub acknowledged_at: Option<u64>,
    pub acknowledgements: Vec<Acknowledgement>,
    /// Not before this time on the steady clock.
    pub retry_at: Duration,
}

/// One attempt at one run of one hub.
pub struct ClientCall {
    pub run: usize,
    pub answer: Arc<Mutex<Option<Result<Acknowledgement, Error>>>>,
    /// When the client stops to wait.
    pub deadline: Duration,
}

impl Operation {
    pub fn new(request: ClientRequest, started_at: u64) -> Self {
        Self {
            request,
            state: OperationState::Open,
            calls: Vec::new(),
            attempts: 0,
            started_at,
            acknowledged_at: None,
            acknowledgements: Vec::new(),
            retry_at: Duration::ZERO,
        }
    }

    /// Whether the protocol promises that a repetition has no second effect.
    pub fn is_repeatable(&self) -> bool {
        match &self.request {
            ClientRequest::Send { keyed, .. } => *keyed,
            ClientRequest::Pay { .. }
            | ClientRequest::RequestJob { .. }
            | ClientRequest::ReportJob { .. }
            | ClientRequest::CancelJob { .. }
            | ClientRequest::OfferJob { .. }
            | ClientRequest::ClaimJob { .. }
            | ClientRequest::DeclineJob { .. }
            | ClientRequest::JudgeJob { .. }
            | ClientRequest::PostChannel { .. } => true,
        }
    }

    /// Errors that a correct hub may answer to this request with.
    pub fn may_be_refused_with(&self, code: ErrorCode) -> bool {
        match &self.request {
            ClientRequest::Send { .. } | ClientRequest::PostChannel { .. } => false,
            ClientRequest::Pay { .. } => code == ErrorCode::TransferFailed,
            ClientRequest::RequestJob { .. } => {
                matches!(code, ErrorCode::TransferFailed | ErrorCode::AgentOffline)
            }
            ClientRequest::OfferJob { .. } => code == ErrorCode::TransferFailed,
            // The job has another worker by now, or an end.
            ClientRequest::ReportJob { .. } | ClientRequest::DeclineJob { .. } => {
                matches!(code, ErrorCode::JobClosed | ErrorCode::NotFound)
            }
            // An agent that has lost the job does not get it again.
            ClientRequest::ClaimJob { .. } => {
                matches!(code, ErrorCode::JobClosed | ErrorCode::Forbidden)
            }
            ClientRequest::CancelJob { .. } | ClientRequest::JudgeJob { .. } => {
                code == ErrorCode::JobClosed
            }
        }
    }
}
