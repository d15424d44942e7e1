//! A long history as one answer: pages are read from the store while the client takes them, so that a slow client costs one
//! page (R-101).

use crate::http::app_state::AppState;
use crate::http::reply;
use axum::body::HttpBody;
use bytes::Bytes;
use chorus_hub::Principal;
use chorus_hub::envelope::{self, MessagePage};
use chorus_wire::cursor::HistoryStart;
use chorus_wire::{Error, Result, limits};
use futures_util::TryStreamExt;
use futures_util::stream::{self, BoxStream, StreamExt};
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The body of an answer that is longer than one page.
pub struct HistoryBody(BoxStream<'static, Result<Bytes>>);

impl HistoryBody {
    /// The answer that begins with this page, of which there are more.
    pub fn new(state: AppState, principal: Principal, first_page: MessagePage) -> Self {
        let writer = HistoryWriter {
            state,
            principal,
            row_count: 0,
            body_bytes: 0,
            last_id: 0,
        };
        let parts = stream::try_unfold(Some((writer, Some(first_page))), |progress| async move {
            match progress {
                Some((writer, page)) => writer.write_next(page).await.map(Some),
                None => Ok(None),
            }
        });
        Self(parts.into_stream().boxed())
    }
}

struct HistoryWriter {
    state: AppState,
    principal: Principal,
    row_count: usize,
    body_bytes: usize,
    last_id: u64,
}

type HistoryProgress = Option<(HistoryWriter, Option<MessagePage>)>;

impl HistoryWriter {
    /// The bytes of a page, and what comes after it: `None` at the end of the body.
    async fn write_next(mut self, page: Option<MessagePage>) -> Result<(Bytes, HistoryProgress)> {
        let page = match page {
            Some(page) => page,
            None => self.read_page().await?,
        };
        let mut out = Vec::with_capacity(limits::HISTORY_PAGE_BYTES / 4);
        let is_cut = self.write_rows(&page, &mut out)?;
        let has_more = is_cut || page.has_more;
        if has_more && !is_cut && self.row_count < limits::HISTORY_ANSWER_ROWS {
            return Ok((out.into(), Some((self, None))));
        }
        let mut metadata = reply::wrap_success(&self.state, ()).metadata;
        metadata.next = has_more.then(|| self.last_id.to_string());
        out.extend_from_slice(b"],\"metadata\":");
        serde_json::to_writer(&mut out, &metadata).map_err(Error::internal)?;
        out.push(b'}');
        Ok((out.into(), None))
    }

    async fn read_page(&self) -> Result<MessagePage> {
        let limit = (limits::HISTORY_ANSWER_ROWS - self.row_count).min(limits::HISTORY_PAGE);
        let since = Some(HistoryStart::AfterId(self.last_id));
        envelope::list_message_history(&self.principal, &self.state.hub, since, limit).await
    }

    /// True when a row no longer fits into the answer.
    fn write_rows(&mut self, page: &MessagePage, out: &mut Vec<u8>) -> Result<bool> {
        if self.row_count == 0 {
            out.extend_from_slice(br#"{"success":true,"data":["#);
        }
        for row in &page.rows {
            let start = out.len();
            if self.row_count > 0 {
                out.push(b',');
            }
            serde_json::to_writer(&mut *out, row).map_err(Error::internal)?;
            let row_bytes = out.len() - start;
            if self.body_bytes + row_bytes > limits::HISTORY_ANSWER_BYTES {
                out.truncate(start);
                return Ok(true);
            }
            self.body_bytes += row_bytes;
            self.row_count += 1;
            self.last_id = row.id;
        }
        Ok(false)
    }
}

impl HttpBody for HistoryBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>>>> {
        let part = ready!(self.0.poll_next_unpin(cx));
        if let Some(Err(error)) = &part {
            // The status has been sent: the connection breaks, and the client sees that the answer is not whole.
            tracing::warn!(%error, cause = error.cause, "a history ended early");
        }
        Poll::Ready(part.map(|part| part.map(Frame::data)))
    }

    /// The memory of one page, which is counted among the large answers.
    fn size_hint(&self) -> SizeHint {
        let mut size_hint = SizeHint::new();
        size_hint.set_lower(limits::HISTORY_PAGE_BYTES as u64);
        size_hint
    }
}
