//! Does what a client asks at a hub, as the routes of the server would.

use crate::operation::{Acknowledgement, ClientRequest};
use crate::template::{Template, agent_name, owner_name};
use chorus_hub::channel::post_message::post_message;
use chorus_hub::envelope::{self, RepeatedSend};
use chorus_hub::idempotent_request::{IdempotentRequests, RememberedAnswer, RequestStart};
use chorus_hub::identity::{self, IdempotencyKey};
use chorus_hub::market::{self, jobs};
use chorus_hub::{Hub, Principal};
use chorus_wire::Error;
use chorus_wire::channel::channels::NewChannelMessage;
use chorus_wire::market::job::{JobRequest, JobResult};
use chorus_wire::market::transfer::CreditTransfer;
use chorus_wire::message::{DeliveryOutcome, SendRequest};
use serde_json::{Value, json};
use std::sync::Arc;

/// A hub as clients reach it.
#[derive(Clone)]
pub struct ReachableHub {
    pub hub: Hub,
    /// The requests with a key that the hub is carrying out.
    pub requests: Arc<IdempotentRequests>,
}

pub async fn perform(
    reachable: ReachableHub,
    template: Arc<Template>,
    request: ClientRequest,
) -> Result<Acknowledgement, Error> {
    let hub = &reachable.hub;
    let key = &template.keys[request.agent()];
    let principal = identity::authenticate(hub.identity(), Some(key), None).await?;
    match &request {
        ClientRequest::Send {
            sender,
            receiver,
            text,
            keyed,
        } => {
            let body = json!({"receiver_id": agent_name(*receiver), "envelope": {"chorus_version": "0.4",
                "sender_id": agent_name(*sender), "original_text": text, "sender_culture": "en"}});
            let send = SendRequest::parse(body.to_string().as_bytes())?;
            let key = keyed.then(|| idempotency_key(text));
            let repeated = RepeatedSend::FirstOutcome;
            let sent = envelope::send_envelope(&principal, hub, send, key, repeated).await?;
            Ok(Acknowledgement::Sent {
                trace_id: sent.trace_id.to_string(),
                outcome: describe_outcome(&sent.delivery).to_owned(),
            })
        }
        ClientRequest::PostChannel { text } => {
            let message =
                NewChannelMessage::parse(json!({"content": text}).to_string().as_bytes())?;
            let key = Some(idempotency_key(text));
            let row = post_message(&principal, hub, &template.channel, message, key).await?;
            Ok(Acknowledgement::Posted {
                cursor: row.cursor.unwrap_or_default(),
            })
        }
        ClientRequest::Pay { .. } => {
            let reply = perform_once(&reachable, &principal, &request).await?;
            Ok(Acknowledgement::Paid(reply))
        }
        ClientRequest::RequestJob { .. }
        | ClientRequest::ReportJob { .. }
        | ClientRequest::CancelJob { .. }
        | ClientRequest::OfferJob { .. }
        | ClientRequest::ClaimJob { .. }
        | ClientRequest::DeclineJob { .. }
        | ClientRequest::JudgeJob { .. } => {
            let reply = perform_once(&reachable, &principal, &request).await?;
            let job: Value = serde_json::from_str(&reply).unwrap_or_default();
            Ok(Acknowledgement::Job {
                state: job["state"].as_str().unwrap_or_default().to_owned(),
            })
        }
    }
}

/// Carries a request of the market out under its `Idempotency-Key` (R-27), like the server's routes: a repetition gets the
/// first answer.
async fn perform_once(
    reachable: &ReachableHub,
    principal: &Principal,
    request: &ClientRequest,
) -> Result<String, Error> {
    let hub = &reachable.hub;
    let key = idempotency_key(&format!("{request:?}"));
    let path = request_path(request);
    let execution = match reachable.requests.begin(principal, hub, &path, key).await? {
        RequestStart::Repeat(answer) => return Ok(answer.body),
        RequestStart::Execute(execution) => execution,
    };
    let work = perform_on_market(hub, principal, request);
    let done = match execution.is_answer_lost() && has_effect_once(request) {
        true => work.await,
        false => execution.run(work).await,
    };
    match done {
        Err(error) => {
            let first = execution.finish(error.code.status(), None).await?;
            first.map(|answer| answer.body).ok_or(error)
        }
        Ok(body) => {
            let answer = RememberedAnswer {
                status: 200,
                content_type: "application/json".to_owned(),
                body: body.clone(),
            };
            let first = execution.finish(200, Some(&answer)).await;
            Ok(first.ok().flatten().map_or(body, |answer| answer.body))
        }
    }
}

/// Whether the ids in the request keep it from having its effect twice, so that it may be carried out again for its answer.
fn has_effect_once(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::Pay { .. }
        | ClientRequest::ClaimJob { .. }
        | ClientRequest::ReportJob { .. }
        | ClientRequest::DeclineJob { .. } => true,
        ClientRequest::Send { .. }
        | ClientRequest::PostChannel { .. }
        | ClientRequest::RequestJob { .. }
        | ClientRequest::OfferJob { .. }
        | ClientRequest::CancelJob { .. }
        | ClientRequest::JudgeJob { .. } => false,
    }
}

fn request_path(request: &ClientRequest) -> String {
    let job_id = request.job_id().unwrap_or_default();
    match request {
        ClientRequest::Send { .. } => "/messages".to_owned(),
        ClientRequest::PostChannel { .. } => "/channels/work/messages".to_owned(),
        ClientRequest::Pay { .. } => "/transfer".to_owned(),
        ClientRequest::RequestJob { .. } | ClientRequest::OfferJob { .. } => "/jobs".to_owned(),
        ClientRequest::ReportJob { .. } | ClientRequest::DeclineJob { .. } => {
            format!("/jobs/{job_id}/result")
        }
        ClientRequest::CancelJob { .. } => format!("/jobs/{job_id}/cancel"),
        ClientRequest::ClaimJob { .. } => format!("/jobs/{job_id}/claim"),
        ClientRequest::JudgeJob { approves: true, .. } => format!("/jobs/{job_id}/approve"),
        ClientRequest::JudgeJob {
            approves: false, ..
        } => format!("/jobs/{job_id}/reject"),
    }
}

/// The answer as JSON.
async fn perform_on_market(
    hub: &Hub,
    principal: &Principal,
    request: &ClientRequest,
) -> Result<String, Error> {
    let job = match request {
        ClientRequest::Send { .. } | ClientRequest::PostChannel { .. } => {
            unreachable!("these have records of their own")
        }
        ClientRequest::Pay { .. } => {
            let transfer = build_transfer(request)?;
            return market::transfer_credits(principal, hub, transfer).await;
        }
        ClientRequest::RequestJob { .. } | ClientRequest::OfferJob { .. } => {
            let wanted = JobRequest::parse(job_body(request).to_string().as_bytes())?;
            jobs::request_job(principal, hub, wanted, "http://hub").await?
        }
        ClientRequest::ReportJob { job_id, .. } => {
            let result = JobResult::parse(br#"{"status":"SUCCESS","output_data":{"sum":3}}"#)?;
            jobs::report_result(principal, hub, job_id, result).await?
        }
        ClientRequest::DeclineJob { job_id, .. } => {
            let result = JobResult::parse(
                br#"{"status":"FAILURE","error_code":"AGENT_OFFLINE","error_message":"no time"}"#,
            )?;
            jobs::report_result(principal, hub, job_id, result).await?
        }
        ClientRequest::CancelJob { job_id, .. } => jobs::cancel_job(principal, hub, job_id).await?,
        ClientRequest::ClaimJob { job_id, .. } => jobs::claim_job(principal, hub, job_id).await?,
        ClientRequest::JudgeJob {
            job_id,
            approves: true,
            ..
        } => jobs::approve_job(principal, hub, job_id).await?,
        ClientRequest::JudgeJob {
            job_id,
            approves: false,
            ..
        } => jobs::reject_job(principal, hub, job_id, None).await?,
    };
    serde_json::to_string(&job).map_err(Error::internal)
}

fn build_transfer(request: &ClientRequest) -> Result<CreditTransfer, Error> {
    let ClientRequest::Pay {
        payer,
        payee,
        transfer_id,
        cents,
    } = request
    else {
        return Err(Error::internal("not a payment"));
    };
    let body = format!(
        r#"{{"transfer_id":"{transfer_id}","from_owner":"{}","to_owner":"{}","amount":{}.{:02}}}"#,
        owner_name(*payer),
        owner_name(*payee),
        cents / 100,
        cents % 100
    );
    CreditTransfer::parse(body.as_bytes())
}

fn job_body(request: &ClientRequest) -> Value {
    match request {
        ClientRequest::RequestJob {
            job_id,
            skill,
            has_callback,
            ..
        } => {
            let mut body = json!({"job_id": job_id, "skill_name": skill, "budget": 0.50, "deadline_ms": 30000});
            if *has_callback {
                body["callback_url"] = json!(format!("http://10.0.2.1/callback/{job_id}"));
            }
            body
        }
        ClientRequest::OfferJob {
            job_id,
            needs_approval,
            deadline_ms,
            ..
        } => {
            let mut body = json!({"job_id": job_id, "skill_name": "paint", "budget": 0.50,
                "deadline_ms": deadline_ms, "board": true});
            if *needs_approval {
                body["approve_within_ms"] = json!(20_000);
            }
            body
        }
        ClientRequest::Send { .. }
        | ClientRequest::PostChannel { .. }
        | ClientRequest::Pay { .. }
        | ClientRequest::ReportJob { .. }
        | ClientRequest::DeclineJob { .. }
        | ClientRequest::CancelJob { .. }
        | ClientRequest::ClaimJob { .. }
        | ClientRequest::JudgeJob { .. } => Value::Null,
    }
}

fn idempotency_key(text: &str) -> IdempotencyKey {
    let mut fingerprint = [0; 32];
    for (index, byte) in text.bytes().enumerate() {
        fingerprint[index % 32] ^= byte;
    }
    IdempotencyKey {
        key: format!("key-{text}"),
        fingerprint,
    }
}

fn describe_outcome(outcome: &DeliveryOutcome) -> &'static str {
    match outcome {
        DeliveryOutcome::DeliveredSse => "delivered_sse",
        DeliveryOutcome::Delivered { .. } => "delivered",
        DeliveryOutcome::Queued => "queued",
        DeliveryOutcome::Failed { .. } => "failed",
    }
}
