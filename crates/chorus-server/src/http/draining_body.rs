//! A request body that is drained when it is dropped unread, so that the client receives its response.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use chorus_wire::limits;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Max bytes read and discarded of a request that was answered before its end. A client that writes everything before it
/// reads, such as a proxy, would otherwise see a reset connection instead of the response.
const MAX_DRAINED_BYTES: usize = 32 * limits::BODY_BYTES;
/// Max time for it: a client that sends slowly must not keep a connection for an answer that it has had.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The body of every request. Dropping it before its end drains the rest in the background.
pub struct DrainingBody(Option<hyper::body::Incoming>);

impl DrainingBody {
    pub fn wrap_incoming(body: hyper::body::Incoming) -> Body {
        if body.is_end_stream() {
            Body::empty()
        } else {
            Body::new(Self(Some(body)))
        }
    }
}

impl HttpBody for DrainingBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let frame = ready!(Pin::new(body).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) {
            self.0 = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.0
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for DrainingBody {
    fn drop(&mut self) {
        let Some(mut body) = self.0.take().filter(|body| !body.is_end_stream()) else {
            return;
        };
        // Without a runtime there is no connection to drain.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(tokio::time::timeout(DRAIN_TIMEOUT, async move {
            let mut bytes_left = MAX_DRAINED_BYTES;
            while let Some(Ok(frame)) = body.frame().await {
                bytes_left = bytes_left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
                if bytes_left == 0 {
                    break;
                }
            }
        }));
    }
}
