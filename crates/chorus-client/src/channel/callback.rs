//! Posts an agent's events to a callback URL, in order and with retries (CHN-30…33).

use super::outgoing_event::{OutgoingEvent, print_event};
use crate::http::ApiCall;
use crate::{Error, HubClient, Result, limits};
use chorus_wire::secret::Secret;
use reqwest::{Method, header};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The callback of one delivery. Posting takes `&mut self`, so that events have an order.
#[derive(Debug)]
pub struct CallbackClient(HubClient);

impl CallbackClient {
    /// Uses the URL as it was delivered: nothing is added to it, and no key is sent (CHN-15).
    pub fn from_url(url: &Secret) -> Result<Self> {
        HubClient::for_callback(url.expose()).map(Self)
    }

    /// Sets the backoff between attempts.
    pub fn with_backoff(mut self, backoff: crate::backoff::Backoff) -> Self {
        self.0.backoff = backoff;
        self
    }

    /// Posts one event. Broken connections and transient refusals are retried with one `Idempotency-Key`, so that a
    /// service that supports the header shows the event once.
    pub async fn send_event(&mut self, event: &OutgoingEvent) -> Result<()> {
        let call = ApiCall::post("", print_event(event));
        self.0.send_with_retry(call).await.map(drop)
    }

    pub async fn send_message(&mut self, content: impl Into<String>) -> Result<()> {
        self.send_event(&OutgoingEvent::new_message(content)).await
    }

    pub async fn send_status(&mut self, status: impl Into<String>) -> Result<()> {
        self.send_event(&OutgoingEvent::new_status(status)).await
    }

    pub async fn send_tool_call(
        &mut self,
        id: &str,
        name: &str,
        args: &Map<String, Value>,
    ) -> Result<()> {
        self.send_event(&OutgoingEvent::new_tool_call(id, name, args))
            .await
    }

    pub async fn send_tool_result(&mut self, id: &str, content: impl Into<String>) -> Result<()> {
        self.send_event(&OutgoingEvent::new_tool_result(id, content))
            .await
    }

    pub async fn send_error(&mut self, message: impl Into<String>, code: &str) -> Result<()> {
        self.send_event(&OutgoingEvent::new_error(message, Some(code.to_owned())))
            .await
    }

    /// Sends many events over one request. Accepted events are never sent again.
    pub fn open_stream(&mut self) -> CallbackStream {
        let (line_sender, mut line_receiver) = mpsc::channel::<String>(limits::CALLBACK_QUEUE_LEN);
        let lines = futures_util::stream::poll_fn(move |cx| {
            line_receiver
                .poll_recv(cx)
                .map(|line| line.map(Ok::<_, std::io::Error>))
        });
        let client = self.0.clone();
        let request = client
            .build_request(Method::POST, "")
            .header(header::CONTENT_TYPE, "application/x-ndjson");
        let request = request.body(reqwest::Body::wrap_stream(lines));
        let upload = tokio::spawn(async move {
            let response = request
                .send()
                .await
                .map_err(|e| client.transport_error(&e))?;
            client
                .read_response(response)
                .await?
                .require_success()
                .map(drop)
        });
        CallbackStream {
            line_sender: Some(line_sender),
            upload,
        }
    }
}

/// An open NDJSON request.
#[derive(Debug)]
pub struct CallbackStream {
    line_sender: Option<mpsc::Sender<String>>,
    upload: JoinHandle<Result<()>>,
}

impl CallbackStream {
    /// Queues one event; waits while the queue is full. After a refusal no further event is sent.
    pub async fn send_event(&mut self, event: &OutgoingEvent) -> Result<()> {
        let line = format!("{}\n", print_event(event));
        let is_sent = match &self.line_sender {
            Some(line_sender) => line_sender.send(line).await.is_ok(),
            None => false,
        };
        if is_sent {
            Ok(())
        } else {
            self.await_upload().await
        }
    }

    /// Ends the request and returns the service's answer.
    pub async fn finish_stream(mut self) -> Result<()> {
        self.await_upload().await
    }

    async fn await_upload(&mut self) -> Result<()> {
        self.line_sender = None;
        match (&mut self.upload).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::Transport(
                "the stream to the callback broke off".into(),
            )),
        }
    }
}
