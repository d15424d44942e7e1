//! Sending envelopes, and asking what became of them (SKL-11, TRN-46…48).

use crate::http::{ApiCall, encode_segment};
use crate::{HubClient, Result, limits};
use chorus_wire::envelope::Envelope;
use chorus_wire::message::{HistoryRow, MessageStatus, ReceiverReply, SendReply};
use chorus_wire::time::UnixMicros;
use serde_json::json;
use uuid::Uuid;

/// A send that the hub took, whatever became of the delivery.
#[derive(Clone, Debug)]
pub struct AcceptedMessage {
    pub sent: SendReply,
    /// When it was sent, for the history file.
    pub at: String,
}

impl HubClient {
    /// Sends, and sends again up to `retries` times when the receiver's endpoint could not be reached.
    ///
    /// A broken connection repeats the request under the same `Idempotency-Key`: the hub answers once. A `failed` delivery
    /// is an answer, kept under its key, so another try is another request with a key of its own.
    pub async fn send_message(
        &self,
        receiver: &str,
        envelope: &Envelope,
        retries: u32,
    ) -> Result<AcceptedMessage> {
        let body = format!(
            r#"{{"receiver_id":{},"envelope":{}}}"#,
            json!(receiver),
            envelope.to_json()
        );
        let path = self.fetch_paths().await?.messages.clone();
        let mut failures = 0;
        loop {
            let call = ApiCall {
                idempotency_key: Some(new_idempotency_key()),
                ..ApiCall::post(&*path, body.clone())
            };
            let (sent, at) = self.send_with_retry(call).await?.into_data::<SendReply>()?;
            failures += 1;
            if failures > retries || !is_worth_retrying(&sent) {
                let at = trace_time(&sent.trace_id).or(at).unwrap_or_default();
                return Ok(AcceptedMessage { sent, at });
            }
            tokio::time::sleep(self.backoff.delay_after(failures)).await;
        }
    }

    /// One page of what this agent sent and received, oldest first, after `since` (R-15).
    pub async fn fetch_history(&self, since: Option<&str>) -> Result<Vec<HistoryRow>> {
        let since = since
            .map(|since| format!("&since={}", encode_segment(since)))
            .unwrap_or_default();
        let path = format!(
            "{}?limit={}{since}",
            self.fetch_paths().await?.history,
            limits::PAGE_SIZE
        );
        self.send_with_retry(ApiCall::get(path))
            .await?
            .into_data()
            .map(|(rows, _)| rows)
    }

    /// Where a message stands; its sender and its receiver may ask.
    pub async fn fetch_message_status(&self, trace_id: &str) -> Result<MessageStatus> {
        let path = format!(
            "{}/{}",
            self.fetch_paths().await?.messages,
            encode_segment(trace_id)
        );
        self.fetch_data(ApiCall::get(path)).await
    }

    /// The receiver's reply to a message that came by stream (R-34). The same reply again is no error, so it is repeated
    /// until it gets through.
    pub async fn send_response(&self, trace_id: &str, reply: &ReceiverReply) -> Result<()> {
        let path = format!(
            "{}/{}/response",
            self.fetch_paths().await?.history,
            encode_segment(trace_id)
        );
        self.send_with_retry(ApiCall::post(path, json!(reply).to_string()))
            .await
            .map(|_| ())
    }
}

/// TRN-46, TRN-47: only what may pass.
fn is_worth_retrying(sent: &SendReply) -> bool {
    let code = sent.error_code.as_deref();
    sent.delivery == "failed" && matches!(code, Some("ERR_AGENT_UNREACHABLE" | "ERR_TIMEOUT"))
}

/// When a message was sent, to the millisecond, out of its trace id (UUIDv7, R-15). The same message gets the same text
/// from the answer to a send and from a history page, which is how a line is known again.
pub fn trace_time(trace_id: &Uuid) -> Option<String> {
    let (seconds, nanos) = trace_id.get_timestamp()?.to_unix();
    let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)? + i64::from(nanos / 1_000);
    (trace_id.get_version_num() == 7).then(|| UnixMicros(micros).to_rfc3339_millis())
}

/// 128 random bits as hex: for keys that must not meet.
fn new_idempotency_key() -> String {
    format!("{:032x}", rand::random::<u128>())
}
