//! Which request a client of a history makes next.

use crate::history::History;
use crate::operation::{ClientRequest, Operation, OperationState};
use crate::template::{BOARD_WORKERS, HOOK, INBOX_WORKER, READERS, WORKER};

/// A job that its requester knows of, by what clients were told.
struct KnownJob {
    requester: usize,
    job_id: String,
    /// The agent that has the job, as far as clients know.
    worker: Option<usize>,
    is_on_board: bool,
    needs_approval: bool,
    is_reported: bool,
    /// Agents that have asked for it: each asks once.
    claimers: Vec<usize>,
    decliners: Vec<usize>,
}

impl KnownJob {
    /// The job that this request began.
    fn from_request(request: &ClientRequest) -> Option<Self> {
        let (requester, job_id, worker, needs_approval) = match request {
            ClientRequest::RequestJob {
                requester,
                job_id,
                skill,
                ..
            } => {
                let worker = if *skill == "sum" {
                    WORKER
                } else {
                    INBOX_WORKER
                };
                (*requester, job_id, Some(worker), false)
            }
            ClientRequest::OfferJob {
                requester,
                job_id,
                needs_approval,
                ..
            } => (*requester, job_id, None, *needs_approval),
            ClientRequest::Send { .. }
            | ClientRequest::Pay { .. }
            | ClientRequest::ReportJob { .. }
            | ClientRequest::CancelJob { .. }
            | ClientRequest::ClaimJob { .. }
            | ClientRequest::DeclineJob { .. }
            | ClientRequest::JudgeJob { .. }
            | ClientRequest::PostChannel { .. } => return None,
        };
        Some(Self {
            requester,
            job_id: job_id.clone(),
            worker,
            is_on_board: worker.is_none(),
            needs_approval,
            is_reported: false,
            claimers: Vec::new(),
            decliners: Vec::new(),
        })
    }

    /// What a request about this job, and its answer, tell of it.
    fn note(&mut self, operation: &Operation) {
        let is_acknowledged = operation.state == OperationState::Acknowledged;
        match &operation.request {
            ClientRequest::ClaimJob { claimer, .. } => {
                self.claimers.push(*claimer);
                if is_acknowledged {
                    self.worker = Some(*claimer);
                }
            }
            ClientRequest::DeclineJob { worker, .. } => {
                self.decliners.push(*worker);
                if self.worker == Some(*worker) && self.is_on_board {
                    self.worker = None;
                }
            }
            ClientRequest::ReportJob { .. } => self.is_reported |= is_acknowledged,
            ClientRequest::Send { .. }
            | ClientRequest::Pay { .. }
            | ClientRequest::RequestJob { .. }
            | ClientRequest::OfferJob { .. }
            | ClientRequest::CancelJob { .. }
            | ClientRequest::JudgeJob { .. }
            | ClientRequest::PostChannel { .. } => {}
        }
    }
}

impl History {
    pub fn draw_request(&mut self) -> ClientRequest {
        let number = self.operations.len();
        let agent = self.random.below(READERS.len());
        let other = (agent + 1 + self.random.below(READERS.len() - 1)) % READERS.len();
        match self.random.below(24) {
            0..9 => ClientRequest::Send {
                sender: agent,
                receiver: if self.random.happens(0.25) {
                    HOOK
                } else {
                    other
                },
                text: format!("text-{number}"),
                keyed: self.random.happens(0.7),
            },
            9..12 => ClientRequest::Pay {
                payer: agent,
                payee: other,
                transfer_id: format!("pay-{number}"),
                cents: 1 + self.random.below(4_000) as i64,
            },
            12..14 => ClientRequest::RequestJob {
                requester: self.random.below(READERS.len() - 1),
                job_id: format!("job-{number}"),
                skill: if self.random.happens(0.5) {
                    "sum"
                } else {
                    "read"
                },
                has_callback: self.random.happens(0.5),
            },
            14..16 => ClientRequest::OfferJob {
                requester: agent,
                job_id: format!("job-{number}"),
                needs_approval: self.random.happens(0.5),
                deadline_ms: *self.random.pick(&[30_000, 900_000]),
            },
            16..21 => self
                .draw_job_request()
                .unwrap_or(ClientRequest::PostChannel {
                    text: format!("line-{number}"),
                }),
            _ => ClientRequest::PostChannel {
                text: format!("line-{number}"),
            },
        }
    }

    fn list_known_jobs(&self) -> Vec<KnownJob> {
        let mut jobs: Vec<KnownJob> = Vec::new();
        for operation in &self.operations {
            let job_id = operation.request.job_id();
            if let Some(job) = jobs.iter_mut().find(|job| Some(&*job.job_id) == job_id) {
                job.note(operation);
            } else if operation.state == OperationState::Acknowledged {
                jobs.extend(KnownJob::from_request(&operation.request));
            }
        }
        jobs
    }

    /// What follows for a job that was requested before: mostly what comes next for it, at times something else.
    fn draw_job_request(&mut self) -> Option<ClientRequest> {
        let mut jobs = self.list_known_jobs();
        if jobs.is_empty() {
            return None;
        }
        let job = jobs.swap_remove(self.random.below(jobs.len()));
        let requester = job.requester;
        let job_id = job.job_id.clone();
        let roll = self.random.below(20);
        let Some(worker) = job.worker else {
            return match roll {
                0..2 => Some(ClientRequest::CancelJob { requester, job_id }),
                _ => self.draw_claim(&job),
            };
        };
        if job.is_reported && job.needs_approval && roll >= 2 {
            let approves = roll >= 8;
            return Some(ClientRequest::JudgeJob {
                requester,
                job_id,
                approves,
            });
        }
        match roll {
            0..3 => Some(ClientRequest::CancelJob { requester, job_id }),
            3..6 if !job.decliners.contains(&worker) => {
                Some(ClientRequest::DeclineJob { worker, job_id })
            }
            6..8 if job.is_on_board => self.draw_claim(&job),
            _ => Some(ClientRequest::ReportJob { worker, job_id }),
        }
    }

    /// A claim of an agent that has not asked for the job yet.
    fn draw_claim(&mut self, job: &KnownJob) -> Option<ClientRequest> {
        let free: Vec<usize> = BOARD_WORKERS
            .into_iter()
            .filter(|agent| *agent != job.requester && !job.claimers.contains(agent))
            .collect();
        if free.is_empty() {
            return None;
        }
        Some(ClientRequest::ClaimJob {
            claimer: *self.random.pick(&free),
            job_id: job.job_id.clone(),
        })
    }
}
