//! The middleware of every request: request id, header bounds, CORS, admission, error body, common headers and metrics.

use super::admission::{self, ClientAddress};
use super::allowed_origins;
use super::api_error::{self, ApiError, ErrorFormat};
use super::app_state::AppState;
use super::auth::AuthResult;
use super::connection_limit::ConnectionSlot;
use super::next_handler::{DirectRoute, NextHandler};
use super::rate_limit::RemainingBudget;
use super::request_span::RequestSpan;
use super::route_scopes::RequiredScope;
use super::{cors, idempotent_routes, query, request_metrics};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chorus_hub::Principal;
use chorus_hub::telemetry::within_scope;
use chorus_wire::{Error, ErrorCode, limits};
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Version, header};
use std::{panic::AssertUnwindSafe, pin::pin, time::Instant};

const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Routes with a budget of their own: monitoring must be answered when other requests of the address are refused.
const PROBE_ROUTES: [&str; 3] = ["/health", "/ready", "/metrics"];

/// Routes that an unverified connection may ask: an orchestrator must not end a hub that is only popular.
const UNVERIFIED_ROUTES: [&str; 2] = ["/health", "/ready"];

/// The route whose requests without a key have a further budget (R-95).
const REGISTRATION_ROUTE: &str = "/register";

/// One year. Browsers then use https for this host without asking by http first.
const STRICT_TRANSPORT_SECURITY: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Routes with a secret in the path. Their handlers charge the request: to the secret's caller, or to the address when it is
/// unknown.
const SECRET_LIMITED_ROUTES: [&str; 4] = [
    "/inbox/{secret}",
    "/jobs/{id}/result/{secret}",
    "/channels/{id}/inbox/{token}",
    "/mcp/{channel}",
];

/// Routes that check `Host` and `Origin` also where the hub does not listen on loopback, as MCP demands.
const TOOL_ROUTES: [&str; 2] = ["/mcp", "/mcp/{channel}"];

/// Whether requests to this route are charged to their caller, and the response says what is left.
pub fn is_rate_limited(route: &str) -> bool {
    !PROBE_ROUTES.contains(&route)
}

/// The middleware of the router.
pub async fn process_request(
    State(state): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map(MatchedPath::as_str);
    process_routed(&state, request, NextHandler::Routed(next), route).await
}

/// Answers a request that skips the router, with the same checks.
pub async fn process_direct(state: &AppState, request: Request, route: &DirectRoute) -> Response {
    let next = NextHandler::Direct(state.clone(), route.handler);
    process_routed(state, request, next, Some(route.path)).await
}

async fn process_routed(
    state: &AppState,
    mut request: Request,
    next: NextHandler,
    route: Option<&str>,
) -> Response {
    // Only measures, decides nothing. With the hub's clock, which tests hold still, every request would take no time.
    let started_at = Instant::now();
    let id = choose_request_id(request.headers());
    let method = request.method().clone();
    let cors = state.origin_policy.decide_cors(request.headers());
    let is_strict_transport =
        state.is_https && !allowed_origins::is_loopback_host(request.headers());
    let has_key = request.headers().contains_key(header::AUTHORIZATION);
    // A client may put anything into its own id.
    let is_chosen_here = request.headers().get(REQUEST_ID_HEADER) != Some(&id);
    let mut span = RequestSpan::begin(state, &request, route);
    let error_format = ErrorFormat::for_path(request.uri().path());
    let from = state.trusted_proxies.resolve_client(
        admission::peer_address(request.extensions()),
        request.headers(),
    );
    request.extensions_mut().insert(ClientAddress(from));
    let slot = request.extensions().get::<ConnectionSlot>().cloned();

    let mut budget = None;
    let response_future = dispatch_request(state, request, next, route, &mut budget);
    let handled = {
        let handling = pin!(AssertUnwindSafe(response_future).catch_unwind());
        within_scope(span.take_scope(), handling).await
    };
    let mut response = match handled {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => ApiError::from(error).into_response(),
        Err(_) => ApiError::from(Error::internal("the handler panicked")).into_response(),
    };
    api_error::write_error_body(
        &mut response,
        state.hub.clock().now(),
        id.to_str().unwrap_or_default(),
        error_format,
    );

    let status = response.status();
    let headers = response.headers_mut();
    if let Some(budget) = budget {
        budget.write_headers(headers);
    }
    cors::write_cors_headers(headers, cors);
    let route = route.unwrap_or("none");
    // Never the path or the query: they contain names, and sometimes tokens (R-74).
    tracing::debug!(request_id = ?id, %from, %method, route, status = status.as_u16(), elapsed = ?started_at.elapsed(), "request");
    request_metrics::record_request(route, &method, status, started_at.elapsed());
    span.finish(status, id.to_str().ok().filter(|_| is_chosen_here));
    if is_strict_transport {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, STRICT_TRANSPORT_SECURITY);
    }
    add_common_headers(headers, id, has_key);
    if slot.is_some_and(|slot| slot.is_unverified()) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Headers of every response. A handler may allow caching, but never of a response to a request with a key.
fn add_common_headers(headers: &mut HeaderMap, id: HeaderValue, has_key: bool) {
    headers.insert(REQUEST_ID_HEADER, id);
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    if has_key || !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

/// The client's request id when it is safe to log, else a new one.
fn choose_request_id(headers: &HeaderMap) -> HeaderValue {
    let is_loggable = |value: &&HeaderValue| {
        let is_safe_byte = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        (1..=64).contains(&value.len()) && value.as_bytes().iter().all(is_safe_byte)
    };
    match headers.get(REQUEST_ID_HEADER).filter(is_loggable) {
        Some(client_id) => client_id.clone(),
        None => HeaderValue::try_from(chorus_hub::random::new_request_id())
            .unwrap_or(HeaderValue::from_static("-")),
    }
}

/// Checks the request, admits it and runs its handler.
async fn dispatch_request(
    state: &AppState,
    mut request: Request,
    next: NextHandler,
    route: Option<&str>,
    budget: &mut Option<RemainingBudget>,
) -> Result<Response, Error> {
    check_header_size(request.headers())?;
    check_host_line(request.version(), request.headers())?;
    let is_tool_route = route.is_some_and(|route| TOOL_ROUTES.contains(&route));
    state
        .origin_policy
        .check_request(request.headers(), is_tool_route)?;
    query::check_encoding(request.uri())?;
    query::check_no_key(request.uri())?;
    // A CORS preflight is not charged; the request that follows is.
    if cors::is_preflight(request.method(), request.headers()) {
        return Ok(cors::preflight_response());
    }
    let client = admission::client_address(request.extensions());
    let route = route.unwrap_or_default();
    let slot = request.extensions().get::<ConnectionSlot>().cloned();
    let is_authenticated_here =
        !PROBE_ROUTES.contains(&route) && !SECRET_LIMITED_ROUTES.contains(&route);
    let may_show_key =
        is_authenticated_here && request.headers().contains_key(header::AUTHORIZATION);
    if let Some(slot) = &slot
        && !UNVERIFIED_ROUTES.contains(&route)
        && !may_show_key
    {
        slot.require_slot()?;
    }
    if PROBE_ROUTES.contains(&route) {
        admission::admit_probe(state, client).await?;
    } else if is_authenticated_here {
        let is_registration = route == REGISTRATION_ROUTE;
        let headers = request.headers();
        let auth =
            admission::admit_request(state, headers, client, is_registration, budget).await?;
        if let Some(slot) = &slot {
            check_slot(slot, &auth)?;
        }
        let scope = state
            .route_scopes
            .get()
            .map_or(RequiredScope::Any, |scopes| {
                scopes.find(request.method(), route)
            });
        request.extensions_mut().insert(auth.with_scope(scope));
    }
    let response = idempotent_routes::run_once(state, request, next, route).await?;
    state.large_answers.hold_response(client, response)
}

/// A connection with a known key moves to a reserved slot; any other needs a general one.
fn check_slot(slot: &ConnectionSlot, auth: &AuthResult) -> Result<(), Error> {
    match &auth.outcome {
        Ok(Principal::Agent(_) | Principal::Operator(_)) => slot.move_to_reserved(),
        Ok(Principal::Anonymous) | Err(_) => {}
    }
    slot.require_slot()
}

/// The HTTP parser accepts slightly more than the limit, so that the refusal can be JSON (failure 26).
fn check_header_size(headers: &HeaderMap) -> Result<(), Error> {
    let size = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4);
    if headers.len() > limits::HEADER_LINES || size.sum::<usize>() > limits::HEADER_BYTES {
        return Err(ErrorCode::HeadersTooLarge.into());
    }
    Ok(())
}

/// RFC 9112, section 3.2: a proxy before the hub may route by the other one of two hosts, or by one that it made up (D-124).
fn check_host_line(version: Version, headers: &HeaderMap) -> Result<(), Error> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let message = match (hosts.next(), hosts.next()) {
        (Some(_), None) => return Ok(()),
        (None, _) if version == Version::HTTP_10 => return Ok(()),
        (None, _) => "Host is missing: every request in HTTP/1.1 has this header",
        (Some(_), Some(_)) => "Host is there twice: a request has this header once",
    };
    Err(Error::invalid_field("Host", message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerSettings;
    use axum::{Router, body::Body, middleware, routing::get};
    use chorus_hub::Hub;
    use http::{Method, StatusCode};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    /// A router with one good route and one that panics, and the data directory of its hub.
    async fn build_test_router() -> (Router, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = ServerSettings::with_data_dir(dir.path());
        settings.cors_origins = vec!["https://page.test".parse().unwrap()];
        let hub = Hub::open(settings.hub.clone()).await.unwrap();
        let state = AppState::new(
            hub,
            settings.request_settings(settings.listen, "http://hub.test".into(), None),
        );
        let router = Router::new()
            .route("/good", get(async || "good"))
            .route("/bad", get(async || -> &'static str { panic!("a bug") }))
            .layer(middleware::from_fn_with_state(
                state.clone(),
                process_request,
            ))
            .with_state(state);
        (router, dir)
    }

    async fn send_request(
        router: &Router,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "hub.test");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        router
            .clone()
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap()
    }

    #[tokio::test]
    async fn a_panic_is_a_wrapped_500_and_the_next_request_is_served() {
        let (router, _dir) = build_test_router().await;
        let response = send_request(&router, Method::GET, "/bad", &[]).await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["error"]["code"], "ERR_INTERNAL");
        assert!(!body.to_string().contains("a bug"));
        assert_eq!(
            send_request(&router, Method::GET, "/good", &[])
                .await
                .status(),
            StatusCode::OK
        );
    }

    #[tokio::test]
    async fn a_safe_request_id_is_kept_and_any_other_is_replaced() {
        let (router, _dir) = build_test_router().await;
        let long = "a".repeat(65);
        for (given, kept) in [
            ("job-7.a_B", true),
            ("a b", false),
            (long.as_str(), false),
            ("", false),
        ] {
            let response =
                send_request(&router, Method::GET, "/good", &[("x-request-id", given)]).await;
            let id = response.headers()["x-request-id"].to_str().unwrap();
            assert_eq!(id == given, kept, "{given:?} became {id:?}");
            assert!(!id.is_empty());
        }
    }

    #[tokio::test]
    async fn a_page_of_an_allowed_origin_is_answered_and_its_preflight_is_not_charged() {
        let (router, _dir) = build_test_router().await;
        let preflight = [
            ("origin", "https://page.test"),
            ("access-control-request-method", "GET"),
        ];
        let response = send_request(&router, Method::OPTIONS, "/good", &preflight).await;
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
        let allowed = "https://page.test";
        assert_eq!(response.headers()["access-control-allow-origin"], allowed);
        assert!(
            response.headers()["access-control-allow-headers"]
                .to_str()
                .unwrap()
                .contains("Authorization")
        );
        assert!(!response.headers().contains_key("ratelimit"));
        let response = send_request(&router, Method::GET, "/good", &preflight[..1]).await;
        assert_eq!(response.headers()["access-control-allow-origin"], allowed);
        assert!(
            !response
                .headers()
                .contains_key("access-control-allow-credentials")
        );
    }

    #[test]
    fn a_response_to_a_request_with_a_key_is_never_cached() {
        let cacheable =
            || HeaderMap::from_iter([(header::CACHE_CONTROL, HeaderValue::from_static("public"))]);
        for (mut headers, keyed, control) in [
            (cacheable(), false, "public"),
            (cacheable(), true, "no-store"),
            (HeaderMap::new(), false, "no-store"),
        ] {
            add_common_headers(&mut headers, HeaderValue::from_static("r"), keyed);
            assert_eq!(headers[header::CACHE_CONTROL], control);
        }
    }

    /// Failure 26
    #[tokio::test]
    async fn too_many_or_too_large_headers_are_a_json_431() {
        let (router, _dir) = build_test_router().await;
        let large = "x".repeat(limits::HEADER_BYTES);
        let many = vec![("x-line", "1"); limits::HEADER_LINES + 1];
        for headers in [vec![("x-large", large.as_str())], many] {
            let response = send_request(&router, Method::GET, "/good", &headers).await;
            assert_eq!(
                response.status(),
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            );
            assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        }
    }
}
