//! Which requests the direct endpoint accepts: none of a web page.
//!
//! A page in a browser on this machine can post to a loopback port, or rebind its own name to it. An agent has no `Origin`,
//! names the host that it posts to, and sends JSON as such, for which a browser asks first.

use chorus_wire::message::ReceiverReply;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::{Method, Request, http::uri::Authority};
use std::net::{IpAddr, SocketAddr};

/// The code for a request of a web page, or for another host.
pub const REFUSED_ORIGIN: &str = "ERR_ORIGIN";

/// The hosts and the origins that a request to the direct endpoint may name.
#[derive(Clone, Debug)]
pub struct AllowedPeers {
    listen_address: SocketAddr,
    /// The URL by which peers reach the endpoint through a proxy.
    public_url: Option<url::Url>,
}

impl AllowedPeers {
    pub fn new(listen_address: SocketAddr, public_url: Option<url::Url>) -> Self {
        Self {
            listen_address,
            public_url,
        }
    }

    /// The status and the reply for a request that must not be read.
    pub(crate) fn check_request<B>(
        &self,
        request: &Request<B>,
    ) -> Result<(), (u16, ReceiverReply)> {
        let headers = request.headers();
        if !self.is_allowed_host(headers, request.uri().authority()) {
            let detail = "this endpoint has another name than the Host of the request";
            return Err((403, ReceiverReply::error(REFUSED_ORIGIN, detail)));
        }
        if !self.is_allowed_origin(headers) {
            let detail = "web pages may not post here";
            return Err((403, ReceiverReply::error(REFUSED_ORIGIN, detail)));
        }
        if request.method() == Method::POST && !is_json(headers) {
            let detail = "send the envelope with Content-Type: application/json";
            let reply = ReceiverReply::error(super::direct::INVALID_ENVELOPE, detail);
            return Err((415, reply));
        }
        Ok(())
    }

    /// On another address than the loopback the names of this machine are unknown, so every host is allowed.
    fn is_allowed_host(&self, headers: &HeaderMap, target: Option<&Authority>) -> bool {
        if !self.listen_address.ip().is_loopback() {
            return true;
        }
        let host =
            single_value(headers, &header::HOST).and_then(|host| host.parse::<Authority>().ok());
        let Some(host) = host else { return false };
        [Some(&host), target]
            .into_iter()
            .flatten()
            .all(|authority| self.is_own_host(authority.host()))
    }

    fn is_own_host(&self, host: &str) -> bool {
        let is_public = self
            .public_url
            .as_ref()
            .and_then(url::Url::host_str)
            .is_some_and(|public| public.eq_ignore_ascii_case(host));
        let ip = host.trim_matches(['[', ']']).parse::<IpAddr>().ok();
        is_public
            || host.eq_ignore_ascii_case("localhost")
            || ip.is_some_and(|ip| ip.is_loopback() || ip == self.listen_address.ip())
    }

    /// No page belongs to this endpoint, so on every address a request of a page is refused. One of the endpoint's own
    /// origin is no foreign page.
    fn is_allowed_origin(&self, headers: &HeaderMap) -> bool {
        if !headers.contains_key(header::ORIGIN) {
            return true;
        }
        let origin =
            single_value(headers, &header::ORIGIN).and_then(|origin| url::Url::parse(origin).ok());
        let Some(origin) = origin else { return false };
        let is_public = self
            .public_url
            .as_ref()
            .is_some_and(|public| public.origin() == origin.origin());
        let is_local = self.listen_address.ip().is_loopback()
            && origin.scheme() == "http"
            && origin.port_or_known_default() == Some(self.listen_address.port())
            && origin.host_str().is_some_and(|host| self.is_own_host(host));
        is_public || is_local
    }
}

/// The only value of a header; two are as bad as an invalid one.
fn single_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// `application/json` or a `+json` type, with any parameters.
fn is_json(headers: &HeaderMap) -> bool {
    let media_type = single_value(headers, &header::CONTENT_TYPE)
        .and_then(|value| value.split(';').next())
        .map(|media_type| media_type.trim().to_ascii_lowercase());
    media_type.is_some_and(|media_type| {
        media_type == "application/json"
            || (media_type.starts_with("application/") && media_type.ends_with("+json"))
    })
}
