//! Answers requests: the router, and the direct routes before it.

use super::app_state::AppState;
use super::front;
use super::next_handler::DirectRoute;
use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use std::sync::Arc;
use tower::Service;

/// Everything that answers requests. Cheap to clone.
#[derive(Clone)]
pub struct RequestService(Arc<ServiceRoutes>);

struct ServiceRoutes {
    state: AppState,
    router: Router,
    direct_routes: Vec<DirectRoute>,
}

impl RequestService {
    pub fn new(state: AppState, router: Router, direct_routes: Vec<DirectRoute>) -> Self {
        Self(Arc::new(ServiceRoutes {
            state,
            router,
            direct_routes,
        }))
    }

    pub async fn answer_request(&self, request: Request) -> Response {
        let routes = &*self.0;
        match routes
            .direct_routes
            .iter()
            .find(|route| route.matches(&request))
        {
            Some(route) => front::process_direct(&routes.state, request, route).await,
            None => {
                let Ok(response) = routes.router.clone().call(request).await;
                response
            }
        }
    }
}
