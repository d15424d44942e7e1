//! Builds responses: wrapped JSON, bare JSON and plain text (TRN-38, R-13).

use super::{api_error::ApiError, app_state::AppState, query::QueryParams};
use axum::{body::Body, response::Response};
use chorus_wire::Error;
use chorus_wire::list_page::ListPage;
use chorus_wire::reply::{ReplyMetadata, SuccessReply};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

pub type ApiResult = Result<Response, ApiError>;

/// `{"success":true,"data":…,"metadata":{…}}`
pub fn wrapped_json<T: Serialize>(state: &AppState, status: StatusCode, data: T) -> ApiResult {
    bare_json(status, &wrap_success(state, data))
}

/// The data in a successful reply, stamped with the time.
pub fn wrap_success<T>(state: &AppState, data: T) -> SuccessReply<T> {
    SuccessReply {
        success: true,
        data,
        metadata: ReplyMetadata::stamped_at(state.hub.clock().now()),
    }
}

/// A wrapped page of a list; `metadata.next` is the cursor of the next one.
pub fn wrap_page<T>(state: &AppState, page: ListPage<T>) -> SuccessReply<Vec<T>> {
    let mut reply = wrap_success(state, page.rows);
    reply.metadata.next = page.next;
    reply
}

/// A bare page of a list: its `Link` header leads to the next one. `query` is that of the request.
pub fn bare_page<T: Serialize>(value: &T, query: &QueryParams, next: Option<&str>) -> ApiResult {
    bare_page_by(value, query, "after", next)
}

/// The same for a list that continues by another parameter, such as `before` where the newest rows come first.
pub fn bare_page_by<T: Serialize>(
    value: &T,
    query: &QueryParams,
    parameter: &str,
    next: Option<&str>,
) -> ApiResult {
    let mut response = bare_json(StatusCode::OK, value)?;
    if let Some(cursor) = next {
        // Without a path, it holds under every prefix that a proxy puts before the hub's paths.
        let link = format!("<?{}>; rel=\"next\"", query.encode_with(parameter, cursor));
        let link = HeaderValue::try_from(link).map_err(Error::internal)?;
        response.headers_mut().insert(header::LINK, link);
    }
    Ok(response)
}

/// The value itself as JSON, serialised once.
pub fn bare_json<T: Serialize>(status: StatusCode, value: &T) -> ApiResult {
    let mut out = Vec::with_capacity(256);
    serde_json::to_writer(&mut out, value).map_err(Error::internal)?;
    Ok(json_response(status, out))
}

pub fn json_response(status: StatusCode, body: impl Into<Body>) -> Response {
    text_response(status, "application/json", body)
}

pub fn text_response(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Body>,
) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
