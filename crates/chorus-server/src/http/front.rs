//! What happens around every request, whatever its route: its id, its bounds, who asks, how often, and the account of it.

use crate::auth::{self, AuthResult};
use crate::rate_limit::{CallerId, RemainingBudget};
use crate::{
    app_state::AppState, cors, ops::metrics, query, reply, reply::ApiError, reply::ErrorFormat,
};
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chorus_wire::{Code, Error, limits};
use futures_util::FutureExt;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, header, request::Parts};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::{panic::AssertUnwindSafe, time::Instant};

const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Asked by machines that must be answered when everybody else is turned away.
const UNLIMITED_ROUTES: [&str; 3] = ["/health", "/ready", "/metrics"];

/// Who asks here shows a secret in the path, so the handler counts: by the secret when it is one, by the address when it is not.
const SECRET_LIMITED_ROUTES: [&str; 3] = [
    "/inbox/{secret}",
    "/channels/{id}/inbox/{token}",
    "/mcp/{channel}",
];

pub async fn process_request(
    State(state): State<AppState>,
    mut request: Request,
    next: Next,
) -> Response {
    // Measures, decides nothing: a held clock would make every request take no time.
    let started_at = Instant::now();
    let id = choose_request_id(&state, request.headers());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let cross_origin = request.headers().contains_key(header::ORIGIN);
    let has_key = request.headers().contains_key(header::AUTHORIZATION);
    let form = ErrorFormat::for_path(request.uri().path());
    let from = state
        .trusted_proxies
        .resolve_client(peer_address(request.extensions()), request.headers());
    request.extensions_mut().insert(ClientAddress(from));

    let mut budget = None;
    let response_future = dispatch_request(&state, request, next, route.as_ref(), &mut budget);
    let mut response = match AssertUnwindSafe(response_future).catch_unwind().await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => ApiError::from(error).into_response(),
        Err(_) => ApiError::from(Error::internal("the handler panicked")).into_response(),
    };
    reply::write_error_body(
        &mut response,
        state.hub.clock().now(),
        id.to_str().unwrap_or_default(),
        form,
    );

    let status = response.status();
    let headers = response.headers_mut();
    if let Some(budget) = budget {
        budget.write_headers(headers);
    }
    if cross_origin {
        cors::allow_any_origin(headers);
    }
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    // Never the path or the query itself: they hold names, and sometimes tokens (R-74).
    tracing::debug!(request_id = ?id, %from, %method, route, status = status.as_u16(), elapsed = ?started_at.elapsed(), "request");
    metrics::record_request(route, &method, status, started_at.elapsed());
    add_common_headers(headers, id, has_key);
    response
}

/// Headers of every answer. A handler may let its answer be kept, but never one that a key was shown for.
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

/// The client's own id when it is harmless in a log, else a new one.
fn choose_request_id(state: &AppState, headers: &HeaderMap) -> HeaderValue {
    let is_loggable = |value: &&HeaderValue| {
        let harmless = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        (1..=64).contains(&value.len()) && value.as_bytes().iter().all(harmless)
    };
    match headers.get(REQUEST_ID_HEADER).filter(is_loggable) {
        Some(given) => given.clone(),
        None => HeaderValue::try_from(state.hub.clock().new_request_id())
            .unwrap_or(HeaderValue::from_static("-")),
    }
}

/// From the parsed request to its answer.
async fn dispatch_request(
    state: &AppState,
    mut request: Request,
    next: Next,
    route: Option<&MatchedPath>,
    budget: &mut Option<RemainingBudget>,
) -> Result<Response, Error> {
    check_header_size(request.headers())?;
    query::check_encoding(request.uri())?;
    // A browser's question costs its page nothing; the request that follows does.
    if cors::is_preflight(request.method(), request.headers()) {
        return Ok(cors::preflight_response());
    }
    let is_exempt = |route: &MatchedPath| {
        [&UNLIMITED_ROUTES[..], &SECRET_LIMITED_ROUTES]
            .concat()
            .contains(&route.as_str())
    };
    if !route.is_some_and(is_exempt) {
        let from = client_address(request.extensions());
        let auth = admit_request(state, request.headers(), from, budget).await?;
        request.extensions_mut().insert(auth);
    }
    Ok(next.run(request).await)
}

/// Where a request comes from, also through a proxy that is trusted (D-92).
#[derive(Clone, Copy)]
struct ClientAddress(IpAddr);

fn client_address(extensions: &Extensions) -> IpAddr {
    extensions
        .get::<ClientAddress>()
        .map_or_else(|| peer_address(extensions), |ClientAddress(from)| *from)
}

/// The other end of the connection.
fn peer_address(extensions: &Extensions) -> IpAddr {
    let peer = extensions.get::<ConnectInfo<SocketAddr>>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(addr)| {
        addr.ip()
    })
}

/// Takes one from the budget of the address that a request with an unknown secret comes from.
pub async fn spend_address_budget(state: &AppState, parts: &Parts) -> Result<(), Error> {
    let Some(rate_limiter) = &state.rate_limiter else {
        return Ok(());
    };
    rate_limiter
        .spend_request(rate_limiter.caller_of_address(client_address(&parts.extensions)))
        .await
        .map(drop)
}

/// Takes one from the budget of a caller that a secret in the path has told.
pub async fn spend_caller_budget(
    state: &AppState,
    caller: CallerId,
) -> Result<Option<RemainingBudget>, Error> {
    let Some(rate_limiter) = &state.rate_limiter else {
        return Ok(None);
    };
    rate_limiter.spend_request(caller).await.map(Some)
}

/// The parser lets a little more through than is allowed, so that what is too much is said in JSON (failure 26).
fn check_header_size(headers: &HeaderMap) -> Result<(), Error> {
    let size = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4);
    if headers.len() > limits::HEADER_LINES || size.sum::<usize>() > limits::HEADER_BYTES {
        return Err(Code::HeadersTooLarge.into());
    }
    Ok(())
}

/// Who asks, and whether they may ask now.
async fn admit_request(
    state: &AppState,
    headers: &HeaderMap,
    peer: IpAddr,
    budget: &mut Option<RemainingBudget>,
) -> Result<AuthResult, Error> {
    let Some(rate_limiter) = &state.rate_limiter else {
        return Ok(auth::authenticate_request(state, headers).await);
    };
    // Keys made up at random would each cost a read of the store: an address that has tried as many as it may ask is told so
    // before anybody looks.
    let needs_lookup = auth::needs_key_lookup(state, headers);
    if needs_lookup {
        let allowed = rate_limiter
            .check_remaining(rate_limiter.caller_guessing_keys(peer))
            .await;
        if allowed.is_err() {
            *budget = Some(rate_limiter.exhausted_budget());
        }
        allowed?;
    }
    let auth = auth::authenticate_request(state, headers).await;
    let caller = match &auth.0 {
        Ok(principal) => rate_limiter.caller_of_principal(principal, peer),
        // A wrong key is nobody's: it counts against the address it comes from.
        Err(_) => {
            if needs_lookup {
                // What counts is that it was taken; the refusal comes with the next guess.
                let _ = rate_limiter
                    .spend_request(rate_limiter.caller_guessing_keys(peer))
                    .await;
            }
            rate_limiter.caller_of_address(peer)
        }
    };
    let remaining = rate_limiter.spend_request(caller).await;
    *budget = Some(
        *remaining
            .as_ref()
            .unwrap_or(&rate_limiter.exhausted_budget()),
    );
    remaining.map(|_| auth)
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

    /// A router with one good route and one that panics, and the directory that its hub lives in.
    async fn around_two_routes() -> (Router, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let settings = ServerSettings::with_data_dir(dir.path());
        let hub = Hub::open(settings.hub.clone()).await.unwrap();
        let doors = AppState::new(hub, "http://hub.test".into(), &settings);
        let router = Router::new()
            .route("/good", get(async || "good"))
            .route("/bad", get(async || -> &'static str { panic!("a bug") }))
            .layer(middleware::from_fn_with_state(
                doors.clone(),
                process_request,
            ))
            .with_state(doors);
        (router, dir)
    }

    async fn asked(
        router: &Router,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> Response {
        let mut request = Request::builder().method(method).uri(path);
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
        let (router, _dir) = around_two_routes().await;
        let response = asked(&router, Method::GET, "/bad", &[]).await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["error"]["code"], "ERR_INTERNAL");
        assert!(!body.to_string().contains("a bug"));
        assert_eq!(
            asked(&router, Method::GET, "/good", &[]).await.status(),
            StatusCode::OK
        );
    }

    #[tokio::test]
    async fn a_sane_request_id_is_kept_and_any_other_is_replaced() {
        let (router, _dir) = around_two_routes().await;
        let long = "a".repeat(65);
        for (given, kept) in [
            ("job-7.a_B", true),
            ("a b", false),
            (long.as_str(), false),
            ("", false),
        ] {
            let response = asked(&router, Method::GET, "/good", &[("x-request-id", given)]).await;
            let id = response.headers()["x-request-id"].to_str().unwrap();
            assert_eq!(id == given, kept, "{given:?} became {id:?}");
            assert!(!id.is_empty());
        }
    }

    #[tokio::test]
    async fn a_page_of_another_origin_may_ask_and_its_question_costs_nothing() {
        let (router, _dir) = around_two_routes().await;
        let question = [
            ("origin", "https://page.test"),
            ("access-control-request-method", "GET"),
        ];
        let response = asked(&router, Method::OPTIONS, "/good", &question).await;
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
        assert_eq!(response.headers()["access-control-allow-origin"], "*");
        assert!(
            response.headers()["access-control-allow-headers"]
                .to_str()
                .unwrap()
                .contains("Authorization")
        );
        assert!(!response.headers().contains_key("ratelimit"));
        let response = asked(&router, Method::GET, "/good", &question[..1]).await;
        assert_eq!(response.headers()["access-control-allow-origin"], "*");
        assert!(
            !response
                .headers()
                .contains_key("access-control-allow-credentials")
        );
    }

    #[test]
    fn an_answer_to_a_key_is_never_kept() {
        let kept =
            || HeaderMap::from_iter([(header::CACHE_CONTROL, HeaderValue::from_static("public"))]);
        for (mut headers, keyed, control) in [
            (kept(), false, "public"),
            (kept(), true, "no-store"),
            (HeaderMap::new(), false, "no-store"),
        ] {
            add_common_headers(&mut headers, HeaderValue::from_static("r"), keyed);
            assert_eq!(headers[header::CACHE_CONTROL], control);
        }
    }

    /// Failure 26
    #[tokio::test]
    async fn too_many_or_too_large_headers_are_a_json_431() {
        let (router, _dir) = around_two_routes().await;
        let large = "x".repeat(limits::HEADER_BYTES);
        let many = vec![("x-line", "1"); limits::HEADER_LINES + 1];
        for headers in [vec![("x-large", large.as_str())], many] {
            let response = asked(&router, Method::GET, "/good", &headers).await;
            assert_eq!(
                response.status(),
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            );
            assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        }
    }
}
