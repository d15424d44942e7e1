//! CORS: the hub's own origin is allowed, and those that the operator names.

use super::allowed_origins::CorsDecision;
use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

/// Whether this is a preflight request, which a browser sends before the actual one.
pub fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

pub fn preflight_response() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    let allowed = [
        (
            header::ACCESS_CONTROL_ALLOW_METHODS,
            "GET, HEAD, POST, PUT, PATCH, DELETE",
        ),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, Content-Type, Accept, Idempotency-Key, Last-Event-ID, X-Request-Id, X-Chorus-Instrument, X-Chorus-Session, X-Chorus-Tool, X-Chorus-Compute, MCP-Protocol-Version, Mcp-Method, Mcp-Name",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    for (name, value) in allowed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Headers of the response to a request of a page.
pub fn write_cors_headers(headers: &mut HeaderMap, decision: CorsDecision) {
    let allowed = match decision {
        CorsDecision::Withheld => return,
        CorsDecision::AllowAny => HeaderValue::from_static("*"),
        CorsDecision::AllowOrigin(origin) => {
            // Another origin gets another response, also from a cache.
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
            origin
        }
    };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("X-Request-Id, Retry-After, RateLimit, RateLimit-Policy, Link"),
    );
}
