//! Sends envelopes and reads their status and history (SKL-11, TRN-46…48).

use crate::http::{ApiCall, encode_segment, new_idempotency_key};
use crate::route_templates::fill_parameter;
use crate::{Error, HubClient, Result, limits};
use chorus_wire::envelope::Envelope;
use chorus_wire::message::{HistoryRow, MessageStatus, ReceiverReply, SendReply};
use chorus_wire::time::UnixMicros;
use serde_json::json;
use uuid::Uuid;

/// A send that the hub accepted; the delivery itself may have failed.
#[derive(Clone, Debug)]
pub struct AcceptedMessage {
    pub sent: SendReply,
    /// When the message was sent, for the history file.
    pub at: String,
}

impl HubClient {
    /// Sends a message, and retries up to `retries` times when the receiver's endpoint could not be reached.
    ///
    /// Every request has the same `Idempotency-Key`, so that there is one message however often it is sent. A `failed`
    /// delivery is an answer that the hub stores under its key; a header asks the hub to post that message again.
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
        let key = new_idempotency_key();
        let mut failures = 0;
        loop {
            let mut call = ApiCall {
                idempotency_key: Some(key.clone()),
                ..ApiCall::post(&*path, body.clone())
            };
            if failures > 0 {
                call.headers.push(("X-Chorus-Retry", "failed".to_owned()));
            }
            let (sent, at) = self.send_with_retry(call).await?.into_data::<SendReply>()?;
            failures += 1;
            if failures > retries || !is_worth_retrying(&sent) {
                let at = trace_time(&sent.trace_id).or(at).unwrap_or_default();
                return Ok(AcceptedMessage { sent, at });
            }
            tokio::time::sleep(self.backoff.delay_after(failures)).await;
        }
    }

    /// One page of the messages that this agent sent and received, oldest first, after `since` (R-15).
    pub async fn fetch_history(&self, since: Option<&str>) -> Result<Vec<HistoryRow>> {
        self.fetch_history_page(since).await.map(|(rows, _)| rows)
    }

    /// All messages after `since`, page by page.
    pub fn read_history(&self, since: Option<String>) -> HistoryReader {
        HistoryReader {
            client: self.clone(),
            since,
            last_id: None,
            is_finished: false,
        }
    }

    /// A page, and the `since` of the next one if the hub says that there is one.
    async fn fetch_history_page(
        &self,
        since: Option<&str>,
    ) -> Result<(Vec<HistoryRow>, Option<String>)> {
        let since = since
            .map(|since| format!("&since={}", encode_segment(since)))
            .unwrap_or_default();
        let path = format!(
            "{}?limit={}{since}",
            self.fetch_paths().await?.history,
            limits::PAGE_SIZE
        );
        self.send_with_retry(ApiCall::get(path)).await?.into_page()
    }

    /// The delivery state of a message; only its sender and its receiver may read it.
    pub async fn fetch_message_status(&self, trace_id: &str) -> Result<MessageStatus> {
        let path = fill_parameter(
            &self.fetch_paths().await?.message,
            &encode_segment(trace_id),
        );
        self.fetch_data(ApiCall::get(path)).await
    }

    /// Sends the receiver's reply to a message that came by stream (R-34). The same reply again is no error, so it is
    /// retried.
    pub async fn send_response(&self, trace_id: &str, reply: &ReceiverReply) -> Result<()> {
        let path = fill_parameter(
            &self.fetch_paths().await?.respond,
            &encode_segment(trace_id),
        );
        self.send_with_retry(ApiCall::post(path, json!(reply).to_string()))
            .await
            .map(|_| ())
    }

    /// Says that the text of a received message was part of a model's turn or on a person's screen (R-81). The first time
    /// stands, so it is retried.
    pub async fn mark_shown(&self, trace_id: &str) -> Result<()> {
        let path = fill_parameter(&self.fetch_paths().await?.shown, &encode_segment(trace_id));
        self.send_with_retry(ApiCall::post(path, String::new()))
            .await
            .map(|_| ())
    }
}

/// Reads history to its end. A hub that does not understand a cursor repeats rows, which ends the reading (R-102).
pub struct HistoryReader {
    client: HubClient,
    since: Option<String>,
    last_id: Option<u64>,
    is_finished: bool,
}

impl HistoryReader {
    /// The next rows; `None` at the end.
    pub async fn next_page(&mut self) -> Result<Option<Vec<HistoryRow>>> {
        if self.is_finished {
            return Ok(None);
        }
        let page = self.client.fetch_history_page(self.since.as_deref()).await;
        let (mut rows, next) = match page {
            // A hub whose `since` is an instant only.
            Err(error) if self.last_id.is_some() && is_bad_request(&error) => {
                self.is_finished = true;
                return Ok(None);
            }
            page => page?,
        };
        let is_full = rows.len() >= limits::PAGE_SIZE;
        rows.retain(|row| self.last_id.is_none_or(|last_id| row.id > last_id));
        let newest_id = rows.iter().map(|row| row.id).max();
        // A hub that says nothing about a next page has one if this page is full.
        let next = next.or(newest_id.filter(|_| is_full).map(|id| id.to_string()));
        self.is_finished = next.is_none() || newest_id.is_none();
        self.since = next;
        self.last_id = newest_id.or(self.last_id);
        Ok(Some(rows).filter(|rows| !rows.is_empty()))
    }
}

fn is_bad_request(error: &Error) -> bool {
    error
        .error_response()
        .is_some_and(|refusal| refusal.status == 400)
}

/// Whether another try may succeed (TRN-46, TRN-47).
fn is_worth_retrying(sent: &SendReply) -> bool {
    let code = sent.error_code.as_deref();
    sent.delivery == "failed" && matches!(code, Some("ERR_AGENT_UNREACHABLE" | "ERR_TIMEOUT"))
}

/// When a message was sent, to the millisecond, read from its trace id (UUIDv7, R-15). A send reply and a history page
/// give the same text for the same message, so a history line is recognised.
pub fn trace_time(trace_id: &Uuid) -> Option<String> {
    let (seconds, nanos) = trace_id.get_timestamp()?.to_unix();
    let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)? + i64::from(nanos / 1_000);
    (trace_id.get_version_num() == 7).then(|| UnixMicros(micros).to_rfc3339_millis())
}
