//! What happens around every request, whatever its route: its id, its bounds, who asks, how often, and the account of it.

use crate::auth::{self, Asked};
use crate::limit::{Budget, Caller};
use crate::{cors, doors::Doors, ops::metrics, query, reply, reply::Form, reply::Refused};
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chorus_wire::{Code, Error, limits};
use futures_util::FutureExt;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, header, request::Parts};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::{panic::AssertUnwindSafe, time::Instant};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Asked by machines that must be answered when everybody else is turned away.
const UNLIMITED: [&str; 3] = ["/health", "/ready", "/metrics"];

/// Who asks here shows a secret in the path, so the handler counts: by the secret when it is one, by the address when it is not.
const COUNTED_BY_SECRET: [&str; 3] = [
    "/inbox/{secret}",
    "/channels/{id}/inbox/{token}",
    "/mcp/{channel}",
];

pub async fn around(State(doors): State<Doors>, mut request: Request, next: Next) -> Response {
    // Measures, decides nothing: a held clock would make every request take no time.
    let began = Instant::now();
    let id = request_id(&doors, request.headers());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let cross_origin = request.headers().contains_key(header::ORIGIN);
    let keyed = request.headers().contains_key(header::AUTHORIZATION);
    let form = Form::of(request.uri().path());
    let from = doors
        .proxies
        .origin(peer(request.extensions()), request.headers());
    request.extensions_mut().insert(Origin(from));

    let mut budget = None;
    let answered = inside(&doors, request, next, route.as_ref(), &mut budget);
    let mut response = match AssertUnwindSafe(answered).catch_unwind().await {
        Ok(Ok(response)) => response,
        Ok(Err(refusal)) => Refused::from(refusal).into_response(),
        Err(_) => Refused::from(Error::internal("the handler panicked")).into_response(),
    };
    reply::settle(
        &mut response,
        doors.hub.clock().now(),
        id.to_str().unwrap_or_default(),
        form,
    );

    let status = response.status();
    let headers = response.headers_mut();
    if let Some(budget) = budget {
        budget.write(headers);
    }
    if cross_origin {
        cors::open(headers);
    }
    let route = route.as_ref().map_or("none", MatchedPath::as_str);
    // Never the path or the query itself: they hold names, and sometimes tokens (R-74).
    tracing::debug!(request_id = ?id, %from, %method, route, status = status.as_u16(), elapsed = ?began.elapsed(), "request");
    metrics::request(route, &method, status, began.elapsed());
    dress(headers, id, keyed);
    response
}

/// Headers of every answer. A handler may let its answer be kept, but never one that a key was shown for.
fn dress(headers: &mut HeaderMap, id: HeaderValue, keyed: bool) {
    headers.insert(REQUEST_ID, id);
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    if keyed || !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

/// The client's own id when it is harmless in a log, else a new one.
fn request_id(doors: &Doors, headers: &HeaderMap) -> HeaderValue {
    let sane = |value: &&HeaderValue| {
        let harmless = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        (1..=64).contains(&value.len()) && value.as_bytes().iter().all(harmless)
    };
    match headers.get(REQUEST_ID).filter(sane) {
        Some(given) => given.clone(),
        None => HeaderValue::try_from(doors.hub.clock().request_id())
            .unwrap_or(HeaderValue::from_static("-")),
    }
}

/// From the parsed request to its answer.
async fn inside(
    doors: &Doors,
    mut request: Request,
    next: Next,
    route: Option<&MatchedPath>,
    budget: &mut Option<Budget>,
) -> Result<Response, Error> {
    bounded(request.headers())?;
    query::well_encoded(request.uri())?;
    // A browser's question costs its page nothing; the request that follows does.
    if cors::is_preflight(request.method(), request.headers()) {
        return Ok(cors::preflight());
    }
    let free = |route: &MatchedPath| {
        [&UNLIMITED[..], &COUNTED_BY_SECRET]
            .concat()
            .contains(&route.as_str())
    };
    if !route.is_some_and(free) {
        let from = origin(request.extensions());
        let asked = admit(doors, request.headers(), from, budget).await?;
        request.extensions_mut().insert(asked);
    }
    Ok(next.run(request).await)
}

/// Where a request comes from, also through a proxy that is trusted (D-92).
#[derive(Clone, Copy)]
struct Origin(IpAddr);

fn origin(extensions: &Extensions) -> IpAddr {
    extensions
        .get::<Origin>()
        .map_or_else(|| peer(extensions), |Origin(from)| *from)
}

/// The other end of the connection.
fn peer(extensions: &Extensions) -> IpAddr {
    let peer = extensions.get::<ConnectInfo<SocketAddr>>();
    peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(addr)| {
        addr.ip()
    })
}

/// Takes one from the budget of the address that a request with an unknown secret comes from.
pub async fn count_stranger(doors: &Doors, parts: &Parts) -> Result<(), Error> {
    let Some(limiter) = &doors.limiter else {
        return Ok(());
    };
    limiter
        .spend(limiter.stranger(origin(&parts.extensions)))
        .await
        .map(drop)
}

/// Takes one from the budget of a caller that a secret in the path has told.
pub async fn count(doors: &Doors, caller: Caller) -> Result<Option<Budget>, Error> {
    let Some(limiter) = &doors.limiter else {
        return Ok(None);
    };
    limiter.spend(caller).await.map(Some)
}

/// The parser lets a little more through than is allowed, so that what is too much is said in JSON (failure 26).
fn bounded(headers: &HeaderMap) -> Result<(), Error> {
    let size = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4);
    if headers.len() > limits::HEADER_LINES || size.sum::<usize>() > limits::HEADER_BYTES {
        return Err(Code::HeadersTooLarge.into());
    }
    Ok(())
}

/// Who asks, and whether they may ask now.
async fn admit(
    doors: &Doors,
    headers: &HeaderMap,
    peer: IpAddr,
    budget: &mut Option<Budget>,
) -> Result<Asked, Error> {
    let Some(limiter) = &doors.limiter else {
        return Ok(auth::ask(doors, headers).await);
    };
    // Keys made up at random would each cost a read of the store: an address that has tried as many as it may ask is told so
    // before anybody looks.
    let unknown = auth::needs_look_up(doors, headers);
    if unknown {
        let may = limiter.has_some(limiter.guesser(peer)).await;
        if may.is_err() {
            *budget = Some(limiter.spent());
        }
        may?;
    }
    let asked = auth::ask(doors, headers).await;
    let caller = match &asked.0 {
        Ok(who) => limiter.caller(who, peer),
        // A wrong key is nobody's: it counts against the address it comes from.
        Err(_) => {
            if unknown {
                // What counts is that it was taken; the refusal comes with the next guess.
                let _ = limiter.spend(limiter.guesser(peer)).await;
            }
            limiter.stranger(peer)
        }
    };
    let spent = limiter.spend(caller).await;
    *budget = Some(*spent.as_ref().unwrap_or(&limiter.spent()));
    spent.map(|_| asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;
    use axum::{Router, body::Body, middleware, routing::get};
    use chorus_hub::Hub;
    use http::{Method, StatusCode};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    /// A router with one good route and one that panics, and the directory that its hub lives in.
    async fn around_two_routes() -> (Router, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let settings = Settings::at(dir.path());
        let hub = Hub::open(settings.hub.clone()).await.unwrap();
        let doors = Doors::new(hub, "http://hub.test".into(), &settings);
        let router = Router::new()
            .route("/good", get(async || "good"))
            .route("/bad", get(async || -> &'static str { panic!("a bug") }))
            .layer(middleware::from_fn_with_state(doors.clone(), around))
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
            dress(&mut headers, HeaderValue::from_static("r"), keyed);
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
