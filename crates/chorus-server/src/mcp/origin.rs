//! Which names of this hub, and pages of which origin, may ask `/mcp`: a page whose name was bent to our address is neither.

use crate::doors::Doors;
use http::{HeaderMap, Uri, header};
use std::net::IpAddr;

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The names under which the hub is asked in good faith: the public one, the address it listens on, and this machine's own
/// names where it listens there.
pub fn hosts(doors: &Doors, headers: &HeaderMap) -> Vec<String> {
    let mut hosts = Vec::new();
    hosts.extend(doors.public_url.parse::<Uri>().ok().and_then(|url| url.host().map(str::to_owned)));
    if doors.listen.is_loopback() || doors.listen.is_unspecified() {
        hosts.extend(LOOPBACK.map(str::to_owned));
    }
    if doors.listen.is_unspecified() {
        // It has every address of the machine, and no name can be bent to a host that is a number.
        hosts.extend(number(headers).map(|ip| ip.to_string()));
    } else {
        hosts.push(doors.listen.to_string());
    }
    hosts
}

/// The host of the request, where it is an address and no name.
fn number(headers: &HeaderMap) -> Option<IpAddr> {
    let authority: http::uri::Authority = headers.get(header::HOST)?.to_str().ok()?.parse().ok()?;
    authority.host().trim_matches(['[', ']']).parse().ok()
}

/// The pages that may ask: the hub's own, and those of this machine where the hub is only there.
pub fn origins(doors: &Doors) -> Vec<String> {
    let mut origins = Vec::new();
    if let Ok(url) = doors.public_url.parse::<Uri>()
        && let (Some(scheme), Some(host)) = (url.scheme_str(), url.host())
    {
        let port = url.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        origins.push(format!("{scheme}://{host}:{port}"));
    }
    if doors.listen.is_loopback() {
        origins.extend(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"].map(str::to_owned));
    }
    origins
}
