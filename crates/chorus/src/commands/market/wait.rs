//! Waiting for a job's result: told by the inbox, asked for after every break in it.

use crate::fail::{Exit, Fail};
use chorus_client::market::Hire;
use chorus_client::{Client, stream::Stream};
use chorus_wire::market::job::{Job, Status};
use serde_json::Value;

/// An open ear: it listens before the job is asked for, so that no result can come unheard.
pub struct Ear {
    client: Client,
    stream: Stream,
}

impl Ear {
    pub async fn open(client: &Client) -> Result<Self, Fail> {
        let mut stream = client.inbox(None).await;
        while stream.next().await?.name != "connected" {}
        Ok(Self {
            client: client.clone(),
            stream,
        })
    }

    /// Asks for the job and waits for its end; the hub ends every job at its deadline.
    pub async fn result(&mut self, hire: &Hire) -> Result<Job, Fail> {
        let mut job = self.client.hire(hire).await?;
        while job.status == Status::Pending {
            let event = self.stream.next().await?;
            let concerns = match event.name.as_str() {
                "job_result" => {
                    let said: Value = serde_json::from_str(&event.data).unwrap_or_default();
                    said["job_id"] == hire.job_id.as_str()
                }
                // The stream was away, and with it perhaps the result.
                "connected" => true,
                _ => false,
            };
            if concerns {
                job = self.client.job(&hire.job_id).await?;
            }
        }
        Ok(job)
    }
}

/// A job that failed is an answer that says no.
pub fn succeeded(job: &Job) -> Result<(), Fail> {
    match job.status {
        Status::Success => Ok(()),
        Status::Failure | Status::Pending => {
            let code = job.error_code.as_deref().unwrap_or("EXECUTION_ERROR");
            let why = job.error_message.as_deref().unwrap_or("the job failed");
            Err(Fail::new(Exit::Refused, code, why))
        }
    }
}
