//! What happens around every request, whatever its route: its id, its bounds, who asks, how often, and the account of it.

use crate::auth::{self, Asked};
use crate::limit::Budget;
use crate::{cors, doors::Doors, ops::metrics, query, reply, reply::Refused};
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chorus_wire::{Code, Error, limits};
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::{panic::AssertUnwindSafe, time::Instant};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Asked by machines that must be answered when everybody else is turned away.
const UNLIMITED: [&str; 3] = ["/health", "/ready", "/metrics"];

pub async fn around(State(doors): State<Doors>, mut request: Request, next: Next) -> Response {
    // Measures, decides nothing: a held clock would make every request take no time.
    let began = Instant::now();
    let id = request_id(&doors, request.headers());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let method = request.method().clone();
    let cross_origin = request.headers().contains_key(header::ORIGIN);

    let mut budget = None;
    let mut response = match admit(&doors, &mut request, route.as_ref(), &mut budget).await {
        Err(refusal) => Refused::from(refusal).into_response(),
        Ok(()) if cors::is_preflight(&method, request.headers()) => cors::preflight(),
        Ok(()) => match AssertUnwindSafe(next.run(request)).catch_unwind().await {
            Ok(response) => response,
            Err(_) => Refused::from(Error::internal("the handler panicked")).into_response(),
        },
    };
    reply::settle(
        &mut response,
        doors.hub.clock().now(),
        id.to_str().unwrap_or_default(),
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
    // Never the path or the query itself: they hold names, and sometimes tokens.
    tracing::debug!(request_id = ?id, %method, route, status = status.as_u16(), elapsed = ?began.elapsed(), "request");
    metrics::request(route, &method, status, began.elapsed());
    dress(headers, id);
    response
}

/// Headers of every answer. What a handler has set itself stands.
fn dress(headers: &mut HeaderMap, id: HeaderValue) {
    headers.insert(REQUEST_ID, id);
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}

/// The client's own id when it is harmless in a log, else a new one.
fn request_id(doors: &Doors, headers: &HeaderMap) -> HeaderValue {
    let sane = |value: &&HeaderValue| {
        let harmless = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        (1..=64).contains(&value.len()) && value.as_bytes().iter().all(harmless)
    };
    match headers.get(REQUEST_ID).filter(sane) {
        Some(given) => given.clone(),
        None => {
            HeaderValue::try_from(doors.hub.clock().request_id()).unwrap_or(HeaderValue::from_static("-"))
        }
    }
}

/// Whether the request is looked at, and who asks. The parser lets a little more through than is allowed, so that what is too
/// much is said in JSON (failure 26).
async fn admit(
    doors: &Doors,
    request: &mut Request,
    route: Option<&MatchedPath>,
    budget: &mut Option<Budget>,
) -> Result<(), Error> {
    let headers = request.headers();
    let size: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    if size > limits::HEADER_BYTES || headers.len() > limits::HEADER_LINES {
        return Err(Code::HeadersTooLarge.into());
    }
    query::well_encoded(request.uri())?;
    if route.is_some_and(|route| UNLIMITED.contains(&route.as_str())) {
        return Ok(());
    }
    let asked = auth::ask(doors, headers).await;
    if let Some(limiter) = &doors.limiter {
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(addr)| addr.ip());
        let caller = match &asked.0 {
            Ok(who) => limiter.caller(who, peer),
            // A wrong key is nobody's: it counts against the address it comes from.
            Err(_) => limiter.stranger(peer),
        };
        *budget = Some(limiter.spent());
        *budget = Some(limiter.spend(caller)?);
    }
    request.extensions_mut().insert::<Asked>(asked);
    Ok(())
}
