//! A write that runs to its end, also when the client disconnects and its connection is dropped.

use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::StatusCode;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The handling of a request that may change something. It runs on the task of its connection, because a task of its own costs
/// two more switches for each request. Dropped before its end, it goes on in a task of its own: what follows from a commit
/// (cache invalidation, webhooks) must still happen.
pub struct UninterruptedWrite {
    handling: Option<Pin<Box<dyn Future<Output = Response> + Send>>>,
}

impl UninterruptedWrite {
    pub fn new(handling: impl Future<Output = Response> + Send + 'static) -> Self {
        // A panic is the end of this request, not of the connection.
        let handling = AssertUnwindSafe(handling).catch_unwind().map(|ended| {
            ended.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
        });
        Self {
            handling: Some(Box::pin(handling)),
        }
    }
}

impl Future for UninterruptedWrite {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let Some(handling) = &mut self.handling else {
            return Poll::Pending;
        };
        let ended = handling.as_mut().poll(cx);
        if ended.is_ready() {
            self.handling = None;
        }
        ended
    }
}

impl Drop for UninterruptedWrite {
    fn drop(&mut self) {
        // Without a runtime the hub has ended, and with it every write.
        if let (Some(handling), Ok(runtime)) =
            (self.handling.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(handling);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn a_write_that_is_dropped_half_way_runs_to_its_end() {
        let (commit, committed) = oneshot::channel::<()>();
        let (finish, finished) = oneshot::channel::<()>();
        let mut write = UninterruptedWrite::new(async move {
            let _ = committed.await;
            let _ = finish.send(());
            StatusCode::OK.into_response()
        });
        assert!((&mut write).now_or_never().is_none(), "it waits");
        drop(write);
        commit.send(()).unwrap();
        finished.await.expect("the write went on");
    }

    #[tokio::test]
    async fn a_write_that_panics_is_a_500() {
        let write = UninterruptedWrite::new(async { panic!("a bug") });
        assert_eq!(write.await.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
