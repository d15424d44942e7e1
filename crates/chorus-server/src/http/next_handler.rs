//! What runs after the checks of a request: the handler that the router found, or that of a direct route.

use super::app_state::AppState;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::future::BoxFuture;
use http::Method;

/// A handler that is called without the router.
pub type DirectHandler = fn(Request, AppState) -> BoxFuture<'static, Response>;

/// A route whose requests skip the router, because the layers of the router cost each request about ten allocations. The
/// router has the route too: for the OpenAPI document, and to refuse other methods.
pub struct DirectRoute {
    pub method: Method,
    pub path: &'static str,
    pub handler: DirectHandler,
}

impl DirectRoute {
    pub fn matches(&self, request: &Request) -> bool {
        *request.method() == self.method && request.uri().path() == self.path
    }
}

/// The next step of a request that has passed the checks.
pub enum NextHandler {
    Routed(Next),
    Direct(AppState, DirectHandler),
}

impl NextHandler {
    pub async fn run(self, request: Request) -> Response {
        match self {
            Self::Routed(next) => next.run(request).await,
            Self::Direct(state, handler) => handler(request, state).await,
        }
    }
}
