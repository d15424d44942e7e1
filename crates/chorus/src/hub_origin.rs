//! Whether a URL leads to the hub that issued a key: a key is sent to no other hub.

use crate::next_step::is_local;
use url::Url;

/// Whether `named` is the hub of `issuer`, as far as the URLs tell. A `CHORUS_HUB` that was set for another purpose is enough to
/// name a hub, and its operator could use a key that was sent there.
///
/// Beside the same origin these are the same hub:
/// - two spellings of the loopback with one port, such as `localhost` and `127.0.0.1`. Another port is another program;
/// - `https` on its usual port in place of `http` at one name, as after a proxy was put before the hub. The certificate proves the
///   name, and the key has gone there in clear before. The other way round it would be sent in clear, so that is refused.
///
/// What else is one hub, such as a name for an address, only its user knows.
pub fn is_same_hub(issuer: &str, named: &str) -> bool {
    let (Ok(from), Ok(to)) = (Url::parse(issuer), Url::parse(named)) else {
        return false;
    };
    let is_same_scheme = from.scheme() == to.scheme();
    let is_same_port = from.port_or_known_default() == to.port_or_known_default();
    let is_loopback = is_local(issuer) && is_local(named) && is_same_scheme && is_same_port;
    let is_secured = (from.scheme(), to.scheme()) == ("http", "https")
        && from.host() == to.host()
        && to.port().is_none();
    from.origin() == to.origin() || is_loopback || is_secured
}

#[cfg(test)]
mod tests {
    use super::is_same_hub;

    //
    #[test]
    fn a_key_goes_to_its_hub_in_every_spelling_and_to_no_other() {
        for (issuer, named) in [
            ("http://hub.example", "http://hub.example:80/"),
            ("https://hub.example", "https://HUB.example:443"),
            ("http://127.0.0.1:3000", "http://localhost:3000"),
            ("http://localhost:3000", "http://[::1]:3000"),
            ("http://hub.example:3000", "https://hub.example"),
            ("https://hub.example/a", "https://hub.example/b"),
        ] {
            assert!(is_same_hub(issuer, named), "{issuer} {named}");
        }
        for (issuer, named) in [
            ("http://hub.example", "http://other.example"),
            ("https://hub.example", "https://hub.example.evil.example"),
            ("https://hub.example", "http://hub.example"),
            ("https://hub.example", "https://hub.example:8443"),
            ("http://hub.example:3000", "https://hub.example:8443"),
            ("http://hub.example", "http://hub.example:3000"),
            ("http://127.0.0.1:3000", "http://127.0.0.1:3001"),
            ("https://127.0.0.1:3000", "http://127.0.0.1:3000"),
            ("http://127.0.0.1:3000", "http://192.168.1.20:3000"),
            ("http://hub.example", "nonsense"),
        ] {
            assert!(!is_same_hub(issuer, named), "{issuer} {named}");
        }
    }
}
