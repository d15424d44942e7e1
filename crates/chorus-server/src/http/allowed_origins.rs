//! `Host` and `Origin` checks, which keep web pages away from a hub on this machine, and the origins that CORS allows.

use chorus_wire::{Error, ErrorCode};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Uri, header};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

const REFUSED_HOST: &str = "this hub answers requests to its own host name only; --public-url names the host under which a proxy reaches it";
const REFUSED_ORIGIN: &str =
    "this hub answers pages of its own origin only; --cors-origin allows another one";

/// The origin of a web page: scheme, host and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebOrigin {
    scheme: String,
    host: String,
    port: u16,
}

impl WebOrigin {
    fn from_parts(scheme: &str, authority: &Authority) -> Option<Self> {
        let default_port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        Some(Self {
            scheme: scheme.to_owned(),
            host: normalize_host(authority.host()),
            port: authority.port_u16().unwrap_or(default_port),
        })
    }

    /// The origin of a URL, whose path is left out.
    fn from_url(url: &str) -> Option<Self> {
        let url: Uri = url.parse().ok()?;
        Self::from_parts(url.scheme_str()?, url.authority()?)
    }
}

/// `https://app.example`, or `*` for every origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorsOrigin {
    Any,
    Only(WebOrigin),
}

impl FromStr for CorsOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let syntax_error =
            || format!("{text} is not an origin such as https://app.example:8443, nor *");
        let (scheme, authority) = text.split_once("://").ok_or_else(syntax_error)?;
        let has_path = authority.contains(['/', '?', '#', '@']);
        let authority: Authority = authority.parse().map_err(|_| syntax_error())?;
        WebOrigin::from_parts(&scheme.to_ascii_lowercase(), &authority)
            .filter(|origin| !has_path && !origin.host.is_empty())
            .map(Self::Only)
            .ok_or_else(syntax_error)
    }
}

impl fmt::Display for CorsOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Only(WebOrigin { scheme, host, port }) => write!(f, "{scheme}://{host}:{port}"),
        }
    }
}

/// Which hosts and origins are the hub's own, and which further origins an operator allows.
#[derive(Clone, Debug)]
pub struct OriginPolicy {
    listen_ip: IpAddr,
    /// The `Host` of a client that uses the listen address as it is printed.
    listen_host: String,
    /// The host of the public URL, and further names in the hub's certificate.
    public_hosts: Vec<String>,
    own_origins: Vec<WebOrigin>,
    cors_origins: Vec<CorsOrigin>,
}

/// What CORS says to the origin of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorsDecision {
    /// The request has no `Origin`, or one that is not allowed.
    Withheld,
    AllowOrigin(HeaderValue),
    AllowAny,
}

impl OriginPolicy {
    pub fn new(listen: SocketAddr, public_url: &str, cors_origins: Vec<CorsOrigin>) -> Self {
        let public_origin = WebOrigin::from_url(public_url);
        let public_host = public_origin.as_ref().map(|origin| origin.host.clone());
        let mut own_origins: Vec<WebOrigin> = public_origin.into_iter().collect();
        own_origins.extend(WebOrigin::from_url(&format!("http://{listen}")));
        own_origins.extend(WebOrigin::from_url(&format!("https://{listen}")));
        Self {
            listen_ip: listen.ip(),
            listen_host: listen.to_string(),
            public_hosts: public_host.into_iter().collect(),
            own_origins,
            cors_origins,
        }
    }

    /// Also answers to these names, for which an authority has checked that they lead here.
    pub fn with_certified_names(mut self, names: &[String]) -> Self {
        for name in names {
            self.own_origins
                .extend(WebOrigin::from_url(&format!("https://{name}")));
            self.public_hosts.push(name.clone());
        }
        self
    }

    /// Refuses a web page that reaches a hub on this machine, by its `Origin` or by a name that it made resolve here.
    /// Every other hub is reached under any name, but its tools for models (`is_strict`) under its own only: a page may
    /// be in the same network.
    pub fn check_request(&self, headers: &HeaderMap, is_strict: bool) -> Result<(), Error> {
        if !is_strict && !self.listen_ip.is_loopback() {
            return Ok(());
        }
        // A browser always sends Host. Only HTTP/1.0 may leave it out, as simple health checks do.
        for host in headers.get_all(header::HOST) {
            if host.as_bytes() == self.listen_host.as_bytes() {
                continue;
            }
            if !parse_authority(host).is_some_and(|host| self.is_own_host(host.host())) {
                return Err(Error::new(ErrorCode::Origin, REFUSED_HOST));
            }
        }
        for origin in headers.get_all(header::ORIGIN) {
            if !self.is_allowed_origin(origin, headers) {
                return Err(Error::new(ErrorCode::Origin, REFUSED_ORIGIN));
            }
        }
        Ok(())
    }

    fn is_own_host(&self, host: &str) -> bool {
        let host = normalize_host(host);
        if self.public_hosts.contains(&host) {
            return true;
        }
        let is_local_listener = self.listen_ip.is_loopback() || self.listen_ip.is_unspecified();
        match host.parse::<IpAddr>() {
            // Every address of the machine is the hub's, and DNS rebinding needs a name.
            Ok(_) if self.listen_ip.is_unspecified() => true,
            Ok(ip) => ip == self.listen_ip || (is_local_listener && ip.is_loopback()),
            Err(_) => is_local_listener && host == "localhost",
        }
    }

    fn is_allowed_origin(&self, origin: &HeaderValue, headers: &HeaderMap) -> bool {
        if self.cors_origins.contains(&CorsOrigin::Any) {
            return true;
        }
        let Some(origin) = origin.to_str().ok().and_then(WebOrigin::from_url) else {
            return false;
        };
        self.is_own_origin(&origin, headers)
            || self
                .cors_origins
                .contains(&CorsOrigin::Only(origin.clone()))
    }

    /// The origin of the public URL or the listen address, or the one under which this request reached the hub: the
    /// hub's port may be forwarded to another one of the client's machine.
    fn is_own_origin(&self, origin: &WebOrigin, headers: &HeaderMap) -> bool {
        if self.own_origins.contains(origin) {
            return true;
        }
        headers
            .get(header::HOST)
            .and_then(parse_authority)
            .filter(|host| self.is_own_host(host.host()))
            .and_then(|host| WebOrigin::from_parts(&origin.scheme, &host))
            .is_some_and(|own| own == *origin)
    }

    /// What the response says about the origin of its request.
    pub fn decide_cors(&self, headers: &HeaderMap) -> CorsDecision {
        match headers.get(header::ORIGIN) {
            None => CorsDecision::Withheld,
            Some(_) if self.cors_origins.contains(&CorsOrigin::Any) => CorsDecision::AllowAny,
            Some(origin) if self.is_allowed_origin(origin, headers) => {
                CorsDecision::AllowOrigin(origin.clone())
            }
            Some(_) => CorsDecision::Withheld,
        }
    }
}

/// Whether the request asks for this machine by a loopback name, which other programs of a developer share.
pub fn is_loopback_host(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(parse_authority);
    host.is_some_and(|host| {
        let host = normalize_host(host.host());
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    })
}

fn parse_authority(value: &HeaderValue) -> Option<Authority> {
    value.to_str().ok()?.parse().ok()
}

/// In lower case, without the brackets of IPv6 and the dot of an absolute name.
fn normalize_host(host: &str) -> String {
    host.trim_matches(['[', ']'])
        .trim_end_matches('.')
        .to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(listen: &str, public_url: &str, cors: &[&str]) -> OriginPolicy {
        let cors = cors.iter().map(|text| text.parse().unwrap()).collect();
        OriginPolicy::new(listen.parse().unwrap(), public_url, cors)
    }

    fn headers(host: &str, origin: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if !host.is_empty() {
            headers.insert(header::HOST, host.parse().unwrap());
        }
        if !origin.is_empty() {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        headers
    }

    //
    #[test]
    fn a_hub_on_loopback_is_reached_under_its_own_names_only() {
        let local = policy("127.0.0.1:3000", "https://hub.example.com", &[]);
        let accepts = |host: &str| local.check_request(&headers(host, ""), false).is_ok();
        for own in [
            "",
            "localhost",
            "LOCALHOST.:3000",
            "127.0.0.1:3000",
            "127.9.9.9",
            "[::1]:3000",
            "hub.example.com",
        ] {
            assert!(accepts(own), "{own}");
        }
        for foreign in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.0.2.1",
            "0.0.0.0:3000",
            "evil.example:3000",
            "/",
        ] {
            assert!(!accepts(foreign), "{foreign}");
        }
        let two_hosts = HeaderMap::from_iter([(header::HOST, "localhost".parse().unwrap())]);
        let mut doubled = two_hosts.clone();
        doubled.append(header::HOST, "evil.example".parse().unwrap());
        assert!(local.check_request(&two_hosts, false).is_ok());
        assert!(local.check_request(&doubled, false).is_err());
    }

    // R-91, another port of the loopback is another origin
    #[test]
    fn a_page_is_answered_on_the_hubs_own_origin_and_on_those_that_are_allowed() {
        let local = policy(
            "127.0.0.1:3000",
            "https://hub.example.com",
            &["https://app.example"],
        );
        let accepts = |host: &str, origin: &str| {
            let headers = headers(host, origin);
            let is_accepted = local.check_request(&headers, false).is_ok();
            let has_cors = local.decide_cors(&headers) != CorsDecision::Withheld;
            assert_eq!(is_accepted, has_cors, "{host} {origin}");
            is_accepted
        };
        for (host, origin) in [
            ("127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("localhost:3000", "http://localhost:3000"),
            // A forwarded port.
            ("localhost:8080", "http://localhost:8080"),
            ("hub.example.com", "https://hub.example.com"),
            ("localhost:3000", "https://app.example"),
            ("localhost:3000", "https://app.example:443"),
        ] {
            assert!(accepts(host, origin), "{host} {origin}");
        }
        for (host, origin) in [
            ("localhost:3000", "http://localhost:6274"),
            ("localhost:3000", "http://evil.example"),
            ("localhost:3000", "null"),
            ("localhost:3000", "https://app.example:8443"),
            ("localhost:3000", "http://app.example"),
        ] {
            assert!(!accepts(host, origin), "{host} {origin}");
        }
    }

    //
    #[test]
    fn a_hub_elsewhere_checks_only_its_tools_and_sends_cors_to_its_own_pages() {
        let public = policy("0.0.0.0:3000", "https://hub.example.com", &[]);
        let page = headers("evil.example", "https://evil.example");
        assert!(public.check_request(&page, false).is_ok());
        assert_eq!(public.decide_cors(&page), CorsDecision::Withheld);
        let accepts = |host: &str| public.check_request(&headers(host, ""), true).is_ok();
        assert!(!accepts("evil.example"));
        for own in ["192.0.2.7:3000", "[2001:db8::1]", "hub.example.com"] {
            assert!(accepts(own), "{own}");
        }
        let any = policy("127.0.0.1:3000", "http://127.0.0.1:3000", &["*"]);
        let page = headers("127.0.0.1:3000", "null");
        assert!(any.check_request(&page, true).is_ok());
        assert_eq!(any.decide_cors(&page), CorsDecision::AllowAny);
        let rebound = headers("evil.example", "");
        assert!(any.check_request(&rebound, false).is_err());
    }

    #[test]
    fn an_origin_is_a_scheme_a_host_and_a_port() {
        for (text, shown) in [
            ("https://App.example", "https://app.example:443"),
            ("http://localhost:5173", "http://localhost:5173"),
            ("*", "*"),
        ] {
            assert_eq!(text.parse::<CorsOrigin>().unwrap().to_string(), shown);
        }
        for bad in [
            "",
            "null",
            "app.example",
            "ftp://a",
            "https://",
            "https://a/",
            "https://u@a",
            "**",
        ] {
            assert!(bad.parse::<CorsOrigin>().is_err(), "{bad}");
        }
    }
}
