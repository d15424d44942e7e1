//! Sending envelopes, and asking what became of them (SKL-11, TRN-46…48).

use crate::http::{Call, segment};
use crate::{Client, Result, limits};
use chorus_wire::envelope::Envelope;
use chorus_wire::message::{HistoryRow, ReceiverReply, Sent, Standing};
use chorus_wire::time::Micros;
use serde_json::json;
use uuid::Uuid;

/// A send that the hub took, whatever became of the delivery.
#[derive(Clone, Debug)]
pub struct Accepted {
    pub sent: Sent,
    /// When it was sent, for the history file.
    pub at: String,
}

impl Client {
    /// Sends, and sends again up to `retries` times when the receiver's endpoint could not be reached.
    ///
    /// A broken connection repeats the request under the same `Idempotency-Key`: the hub answers once. A `failed` delivery
    /// is an answer, kept under its key, so another try is another request with a key of its own.
    pub async fn send(
        &self,
        receiver: &str,
        envelope: &Envelope,
        retries: u32,
    ) -> Result<Accepted> {
        let body = format!(
            r#"{{"receiver_id":{},"envelope":{}}}"#,
            json!(receiver),
            envelope.to_json()
        );
        let path = self.paths().await?.messages.clone();
        let mut failures = 0;
        loop {
            let call = Call {
                idempotency_key: Some(token()),
                ..Call::post(&*path, body.clone())
            };
            let (sent, at) = self.ask_patiently(call).await?.data::<Sent>()?;
            failures += 1;
            if failures > retries || !worth_retrying(&sent) {
                let at = sent_at(&sent.trace_id).or(at).unwrap_or_default();
                return Ok(Accepted { sent, at });
            }
            tokio::time::sleep(self.backoff.wait(failures)).await;
        }
    }

    /// One page of what this agent sent and received, oldest first, after `since` (R-15).
    pub async fn history(&self, since: Option<&str>) -> Result<Vec<HistoryRow>> {
        let since = since
            .map(|since| format!("&since={}", segment(since)))
            .unwrap_or_default();
        let path = format!(
            "{}?limit={}{since}",
            self.paths().await?.history,
            limits::PAGE
        );
        self.ask_patiently(Call::get(path))
            .await?
            .data()
            .map(|(rows, _)| rows)
    }

    /// Where a message stands; its sender and its receiver may ask.
    pub async fn standing(&self, trace_id: &str) -> Result<Standing> {
        let path = format!("{}/{}", self.paths().await?.messages, segment(trace_id));
        self.data(Call::get(path)).await
    }

    /// The receiver's reply to a message that came by stream (R-34). The same reply again is no error, so it is repeated
    /// until it gets through.
    pub async fn respond(&self, trace_id: &str, reply: &ReceiverReply) -> Result<()> {
        let path = format!(
            "{}/{}/response",
            self.paths().await?.history,
            segment(trace_id)
        );
        self.ask_patiently(Call::post(path, json!(reply).to_string()))
            .await
            .map(|_| ())
    }
}

/// TRN-46, TRN-47: only what may pass.
fn worth_retrying(sent: &Sent) -> bool {
    let code = sent.error_code.as_deref();
    sent.delivery == "failed" && matches!(code, Some("ERR_AGENT_UNREACHABLE" | "ERR_TIMEOUT"))
}

/// When a message was sent, to the millisecond, out of its trace id (UUIDv7, R-15). The same message gets the same text
/// from the answer to a send and from a history page, which is how a line is known again.
pub fn sent_at(trace_id: &Uuid) -> Option<String> {
    let (seconds, nanos) = trace_id.get_timestamp()?.to_unix();
    let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)? + i64::from(nanos / 1_000);
    (trace_id.get_version_num() == 7).then(|| Micros(micros).millis())
}

/// 128 random bits as hex: for keys that must not meet.
fn token() -> String {
    format!("{:032x}", rand::random::<u128>())
}
