//! A callback: what an agent says goes there in order, one after the other, and again when it did not arrive (CHN-30…33).

use super::event::{Say, print};
use crate::http::Call;
use crate::{Client, Error, Result, limits};
use chorus_wire::secret::Secret;
use reqwest::{Method, header};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// One delivery's way back. Posting takes it mutably, so that what is said has an order.
#[derive(Debug)]
pub struct Callback(Client);

impl Callback {
    /// The URL as it was delivered; nothing is added to it, no key goes there (CHN-15).
    pub fn open(url: &Secret) -> Result<Self> {
        Client::endpoint(url.expose()).map(Self)
    }

    /// The same with other pauses between attempts.
    pub fn with(mut self, backoff: crate::backoff::Backoff) -> Self {
        self.0.backoff = backoff;
        self
    }

    /// Posts one event. A connection that breaks and a service that cannot right now are waited out a few times, under one
    /// `Idempotency-Key`: a service that knows the header says it once.
    pub async fn say(&mut self, say: &Say) -> Result<()> {
        let key = format!("{:032x}", rand::random::<u128>());
        let call = Call {
            idempotency_key: Some(key),
            ..Call::post("", print(say))
        };
        self.0.ask_patiently(call).await.map(drop)
    }

    pub async fn message(&mut self, content: impl Into<String>) -> Result<()> {
        self.say(&Say::message(content)).await
    }

    pub async fn status(&mut self, status: impl Into<String>) -> Result<()> {
        self.say(&Say::status(status)).await
    }

    pub async fn tool_call(
        &mut self,
        id: &str,
        name: &str,
        args: &Map<String, Value>,
    ) -> Result<()> {
        self.say(&Say::tool_call(id, name, args)).await
    }

    pub async fn tool_result(&mut self, id: &str, content: impl Into<String>) -> Result<()> {
        self.say(&Say::tool_result(id, content)).await
    }

    pub async fn error(&mut self, message: impl Into<String>, code: &str) -> Result<()> {
        self.say(&Say::error(message, Some(code.to_owned()))).await
    }

    /// Many events over one request. What was taken stands; nothing of it is sent twice.
    pub fn stream(&mut self) -> Streaming {
        let (to, mut from) = mpsc::channel::<String>(limits::EVENTS_UNSENT);
        let lines = futures_util::stream::poll_fn(move |cx| {
            from.poll_recv(cx)
                .map(|line| line.map(Ok::<_, std::io::Error>))
        });
        let client = self.0.clone();
        let request = client
            .request(Method::POST, "")
            .header(header::CONTENT_TYPE, "application/x-ndjson");
        let request = request.body(reqwest::Body::wrap_stream(lines));
        let done = tokio::spawn(async move {
            let response = request.send().await.map_err(|e| client.broken(&e))?;
            client.read(response).await?.accepted().map(drop)
        });
        Streaming { to: Some(to), done }
    }
}

/// An open NDJSON request.
#[derive(Debug)]
pub struct Streaming {
    to: Option<mpsc::Sender<String>>,
    done: JoinHandle<Result<()>>,
}

impl Streaming {
    /// Hands one event over; the request waits when the service does. After a refusal the rest is not sent.
    pub async fn say(&mut self, say: &Say) -> Result<()> {
        let line = format!("{}\n", print(say));
        let told = match &self.to {
            Some(to) => to.send(line).await.is_ok(),
            None => false,
        };
        if told { Ok(()) } else { self.ended().await }
    }

    /// Ends the request, and says what the service answered.
    pub async fn finish(mut self) -> Result<()> {
        self.ended().await
    }

    async fn ended(&mut self) -> Result<()> {
        self.to = None;
        match (&mut self.done).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::Transport(
                "the stream to the callback broke off".into(),
            )),
        }
    }
}
