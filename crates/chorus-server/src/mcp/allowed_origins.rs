//! `Host` and `Origin` checks of `/mcp`, which protect against DNS rebinding.

use crate::http::app_state::AppState;
use http::{HeaderMap, Uri, header};
use std::net::IpAddr;

const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The `Host` names of this hub: the public one, the listen address, and the loopback names when it listens there.
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
        // Every address of the machine is the hub's, and DNS rebinding needs a name, so any IP address is accepted.
        hosts.extend(host_ip(headers).map(|ip| ip.to_string()));
    } else {
        hosts.push(state.listen_ip.to_string());
    }
    hosts
}

/// The request's host, if it is an IP address.
fn host_ip(headers: &HeaderMap) -> Option<IpAddr> {
    let authority: http::uri::Authority = headers.get(header::HOST)?.to_str().ok()?.parse().ok()?;
    authority.host().trim_matches(['[', ']']).parse().ok()
}

/// The allowed origins: the hub's own, and pages of this machine when the hub listens on loopback only.
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

    async fn open_state(listen: &str, public_url: &str) -> (AppState, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let settings = ServerSettings {
            listen: listen.parse().unwrap(),
            ..ServerSettings::with_data_dir(dir.path())
        };
        let hub = Hub::open(settings.hub.clone()).await.unwrap();
        let state = AppState::new(hub, settings.request_settings(public_url.to_owned()));
        (state, dir)
    }

    fn host_header(host: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(header::HOST, HeaderValue::from_static(host))])
    }

    #[tokio::test]
    async fn a_hub_on_every_address_accepts_ip_hosts_and_its_own_name() {
        let (state, _dir) = open_state("0.0.0.0:3000", "https://hub.example.com").await;
        let has = |host: &'static str, name: &str| {
            allowed_hosts(&state, &host_header(host))
                .iter()
                .any(|known| known == name)
        };
        assert!(
            has("192.0.2.7:3000", "192.0.2.7"),
            "DNS rebinding needs a name"
        );
        assert!(has("[2001:db8::1]:3000", "2001:db8::1"));
        assert!(has("x", "hub.example.com") && has("x", "localhost"));
        assert!(!has("evil.example", "evil.example") && !has("x", "0.0.0.0"));
        assert_eq!(allowed_origins(&state), ["https://hub.example.com:443"]);
    }

    #[tokio::test]
    async fn a_hub_on_one_address_accepts_that_host_and_local_pages_only_on_loopback() {
        let (public_state, _dir) = open_state("192.0.2.7:3000", "http://192.0.2.7:3000").await;
        assert_eq!(
            allowed_hosts(&public_state, &host_header("198.51.100.1")),
            ["192.0.2.7", "192.0.2.7"]
        );
        assert_eq!(allowed_origins(&public_state), ["http://192.0.2.7:3000"]);
        let (local_state, _dir) = open_state("127.0.0.1:3000", "http://127.0.0.1:3000").await;
        assert!(allowed_origins(&local_state).contains(&"http://localhost:*".to_owned()));
    }
}
