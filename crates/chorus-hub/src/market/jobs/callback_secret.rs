//! The secret in a worker's `callback_url`, with which a worker that has only the jobs document reports later.

use super::status;
use crate::Result;
use crate::context::HubContext;
use crate::identity::rate_limit::CallerId;
use crate::store::jobs::JobRecord;
use chorus_wire::ErrorCode;
use chorus_wire::market::job::{self as wire, JobResult};
use chorus_wire::secret::Secret;
use subtle::ConstantTimeEq;

/// The secret for the worker that has the job now. It is derived, so that it is stored nowhere, and another worker's is another one.
pub(super) fn derive_callback_secret(hub: &HubContext, job: &JobRecord) -> String {
    let job_number = job.id.0.to_be_bytes();
    let worker_number = job.worker.0.to_be_bytes();
    hub.seal_key()
        .derive_url_secret(&[b"job result", &job_number, &worker_number])
}

/// A callback whose secret was recognised.
pub struct JobCallback(JobRecord);

impl JobCallback {
    /// `ERR_NOT_FOUND` for a wrong secret, as for a job that is not there.
    pub async fn find(hub: &HubContext, job_id: &str, secret: &Secret) -> Result<Self> {
        let job = status::find_job(hub, job_id)
            .await?
            .filter(JobRecord::has_worker)
            .ok_or(ErrorCode::NotFound)?;
        let expected = derive_callback_secret(hub, &job);
        let is_equal = expected.as_bytes().ct_eq(secret.expose().as_bytes());
        if bool::from(is_equal) {
            Ok(Self(job))
        } else {
            Err(ErrorCode::NotFound.into())
        }
    }

    /// The caller that pays for the request: the worker.
    pub fn budget_caller(&self) -> CallerId {
        CallerId::Agent(self.0.worker)
    }

    /// `POST /jobs/{id}/result/{secret}`: as the worker's key would report.
    pub async fn report_result(&self, hub: &HubContext, result: JobResult) -> Result<wire::Job> {
        super::report::apply_report(hub, &self.0.job_id, self.0.worker, result).await
    }
}
