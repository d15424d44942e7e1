//! Which names of this hub, and pages of which origin, may ask `/mcp`: a page whose name was bent to our address is neither.

use crate::app_state::AppState;
use http::{HeaderMap, Uri, header};
use std::net::IpAddr;

const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The names under which the hub is asked in good faith: the public one, the address it listens on, and this machine's own
/// names where it listens there.
pub fn allowed_hosts(state: &AppState, headers: &HeaderMap) -> Vec<String> {
    let mut hosts = Vec::new();
    hosts.extend(
        state
            .public_url
            .parse::<Uri>()
            .ok()
            .and_then(|url| url.host().map(str::to_owned)),
    );
    if state.listen_ip.is_loopback() || state.listen_ip.is_unspecified() {
        hosts.extend(LOOPBACK_HOSTS.map(str::to_owned));
    }
    if state.listen_ip.is_unspecified() {
        // It has every address of the machine, and no name can be bent to a host that is a number.
        hosts.extend(host_ip(headers).map(|ip| ip.to_string()));
    } else {
        hosts.push(state.listen_ip.to_string());
    }
    hosts
}

/// The host of the request, where it is an address and no name.
fn host_ip(headers: &HeaderMap) -> Option<IpAddr> {
    let authority: http::uri::Authority = headers.get(header::HOST)?.to_str().ok()?.parse().ok()?;
    authority.host().trim_matches(['[', ']']).parse().ok()
}

/// The pages that may ask: the hub's own, and those of this machine where the hub is only there.
pub fn allowed_origins(state: &AppState) -> Vec<String> {
    let mut origins = Vec::new();
    if let Ok(url) = state.public_url.parse::<Uri>()
        && let (Some(scheme), Some(host)) = (url.scheme_str(), url.host())
    {
        let port = url
            .port_u16()
            .unwrap_or(if scheme == "https" { 443 } else { 80 });
        origins.push(format!("{scheme}://{host}:{port}"));
    }
    if state.listen_ip.is_loopback() {
        origins.extend(
            ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"].map(str::to_owned),
        );
    }
    origins
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerSettings;
    use chorus_hub::Hub;
    use http::HeaderValue;

    async fn doors(listen: &str, public_url: &str) -> (AppState, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let settings = ServerSettings {
            listen: listen.parse().unwrap(),
            ..ServerSettings::with_data_dir(dir.path())
        };
        let hub = Hub::open(settings.hub.clone()).await.unwrap();
        (AppState::new(hub, public_url.to_owned(), &settings), dir)
    }

    fn asked_as(host: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))])
    }

    #[tokio::test]
    async fn a_hub_on_every_address_is_asked_by_number_or_by_its_name() {
        let (doors, _dir) = doors("0.0.0.0:3000", "https://hub.example.com").await;
        let has = |host: &'static str, name: &str| {
            allowed_hosts(&doors, &asked_as(host))
                .iter()
                .any(|known| known == name)
        };
        assert!(
            has("192.0.2.7:3000", "192.0.2.7"),
            "a number cannot be bent"
        );
        assert!(has("[2001:db8::1]:3000", "2001:db8::1"));
        assert!(has("x", "hub.example.com") && has("x", "localhost"));
        assert!(!has("evil.example", "evil.example") && !has("x", "0.0.0.0"));
        assert_eq!(allowed_origins(&doors), ["https://hub.example.com:443"]);
    }

    #[tokio::test]
    async fn a_hub_on_one_address_is_asked_there_and_pages_of_the_machine_only_where_it_is_local() {
        let (doors_outside, _dir) = doors("192.0.2.7:3000", "http://192.0.2.7:3000").await;
        assert_eq!(
            allowed_hosts(&doors_outside, &asked_as("198.51.100.1")),
            ["192.0.2.7", "192.0.2.7"]
        );
        assert_eq!(allowed_origins(&doors_outside), ["http://192.0.2.7:3000"]);
        let (doors_here, _dir) = doors("127.0.0.1:3000", "http://127.0.0.1:3000").await;
        assert!(allowed_origins(&doors_here).contains(&"http://localhost:*".to_owned()));
    }
}
