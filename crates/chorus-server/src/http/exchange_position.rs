//! Where a connection is between a request and the end of its response.
//!
//! The HTTP library writes some refusals itself, without calling the service. Their bytes can be part of any body, so only
//! their place tells them apart: all requests that the service was given are answered, and the answers are written.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

/// The requests of one connection that the service was given, and those of them whose response the HTTP library has
/// taken to its end.
#[derive(Debug, Default)]
pub struct ExchangePosition {
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl ExchangePosition {
    /// Counts a request that is handed to the service.
    pub fn begin_exchange(self: &Arc<Self>) -> OpenExchange {
        self.begun.fetch_add(1, Ordering::Relaxed);
        OpenExchange(self.clone())
    }

    /// How many exchanges there were, if none is open.
    pub fn count_ended(&self) -> Option<usize> {
        let ended = self.ended.load(Ordering::Relaxed);
        (self.begun.load(Ordering::Relaxed) == ended).then_some(ended)
    }
}

/// An exchange, until it is dropped.
pub struct OpenExchange(Arc<ExchangePosition>);

impl OpenExchange {
    /// Leaves the exchange open until the body is dropped, which the HTTP library does at its end.
    pub fn wrap_body(self, body: Body) -> Body {
        Body::new(ExchangeBody {
            body,
            _exchange: self,
        })
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

struct ExchangeBody {
    body: Body,
    _exchange: OpenExchange,
}

impl HttpBody for ExchangeBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
