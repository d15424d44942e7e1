//! A callback body as `application/x-ndjson`: one event per line, for as long as the member sends.

use crate::http::{admission, api_error::ApiError, app_state::AppState};
use axum::body::Body;
use bytes::BytesMut;
use chorus_hub::channel::callback::ResolvedCallback;
use chorus_wire::{Error, ErrorCode, limits};
use http_body_util::BodyExt;
use std::time::Duration;

/// Accepts every line as it arrives. A bad line ends the stream; the events before it stay accepted.
pub async fn read_ndjson(
    state: &AppState,
    callback: &ResolvedCallback,
    mut content: Body,
) -> Result<usize, ApiError> {
    let _slot = match state.callback_streams.acquire(callback.member_id()) {
        Ok(slot) => slot,
        Err(error) => {
            return Err(error.into());
        }
    };
    let mut reader = NdjsonReader {
        state,
        callback,
        buffer: BytesMut::new(),
        line_number: 0,
        event_count: 0,
    };
    loop {
        let next_frame =
            tokio::time::timeout(limits::CALLBACK_STREAM_IDLE_MAX, content.frame()).await;
        let pushed = match next_frame {
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => reader.push_bytes(&data).await,
                Err(_) => Ok(()),
            },
            // An unfinished line is no event.
            Ok(Some(Err(_))) => {
                return Err(reader
                    .unfinished_line_error(Error::validation("the body broke off"))
                    .into());
            }
            Ok(None) => return reader.finish().await.map_err(ApiError::from),
            Err(_) => {
                return Err(reader
                    .unfinished_line_error(ErrorCode::RequestTimeout.into())
                    .into());
            }
        };
        if let Err(error) = pushed {
            return Err(error.into());
        }
    }
}

struct NdjsonReader<'a> {
    state: &'a AppState,
    callback: &'a ResolvedCallback,
    buffer: BytesMut,
    line_number: usize,
    event_count: usize,
}

impl NdjsonReader<'_> {
    async fn push_bytes(&mut self, data: &[u8]) -> Result<(), Error> {
        for piece in data.split_inclusive(|byte| *byte == b'\n') {
            if self.buffer.len() + piece.len() > limits::BODY_BYTES {
                return Err(self.unfinished_line_error(ErrorCode::TooLarge.into()));
            }
            self.buffer.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = self.buffer.split();
                self.accept_line(&line).await?;
            }
        }
        Ok(())
    }

    /// The last line may lack its line break.
    async fn finish(mut self) -> Result<usize, Error> {
        let line = self.buffer.split();
        self.accept_line(&line).await?;
        Ok(self.event_count)
    }

    async fn accept_line(&mut self, line: &[u8]) -> Result<(), Error> {
        self.line_number += 1;
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        // The request was charged for the first line; later lines wait for their budget instead of being refused.
        while self.event_count > 0
            && let Err(error) = self.spend_budget().await
        {
            tokio::time::sleep(Duration::from_secs(error.retry_after.unwrap_or(1))).await;
        }
        self.callback
            .accept_event(&self.state.hub, line, None)
            .await
            .map_err(|error| self.with_line_number(error))?;
        self.event_count += 1;
        Ok(())
    }

    async fn spend_budget(&self) -> Result<(), Error> {
        admission::spend_caller_budget(self.state, self.callback.budget_caller())
            .await
            .map(drop)
    }

    /// Names the line in the error, because the lines before it were accepted.
    fn with_line_number(&self, error: Error) -> Error {
        Error {
            message: format!("line {}: {}", self.line_number, error.message),
            ..error
        }
    }

    fn unfinished_line_error(&mut self, error: Error) -> Error {
        self.line_number += 1;
        self.with_line_number(error)
    }
}
