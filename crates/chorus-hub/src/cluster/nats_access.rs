//! Access to NATS: its servers, the credentials of this hub, and the trusted certificates (D-91).

use crate::pem;
use crate::settings::BusFiles;
use chorus_wire::secret::Secret;
use url::{Host, Url};

/// The credentials of this hub.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NatsIdentity {
    Anonymous,
    Token(Secret),
    User {
        name: String,
        password: Secret,
    },
    /// The text of a credentials file.
    Credentials(Secret),
}

/// The checked settings of a connection.
pub(super) struct NatsAccess {
    /// Without user and password: the client logs the addresses.
    pub servers: Vec<String>,
    pub identity: NatsIdentity,
    /// Every server must use TLS.
    pub require_tls: bool,
    /// A secret would go over the network in clear text, unless the server asks for TLS by itself.
    pub exposes_secret: bool,
}

impl NatsAccess {
    /// `url` may name several servers, separated by commas. An error does not quote it.
    pub fn load(url: &Secret, files: &BusFiles) -> Result<Self, String> {
        let servers: Vec<Url> = url
            .expose()
            .split(',')
            .map(parse_server_url)
            .collect::<Result<_, _>>()?;
        let identity = match &files.credentials {
            None => parse_identity(&servers)?,
            Some(_) if parse_identity(&servers)? != NatsIdentity::Anonymous => {
                return Err(
                    "its URL has a user and --bus-credentials another: one of them says who we are"
                        .into(),
                );
            }
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|e| format!("{}: {e}", path.display()))?;
                NatsIdentity::Credentials(Secret::new(text))
            }
        };
        if let Some(root_certs) = &files.root_certs {
            pem::read_certificates("--bus-root-cert", root_certs)?;
        }
        if let Some((certificate, key)) = &files.client_cert {
            pem::read_certificates("--bus-cert", certificate)?;
            pem::read_private_key("--bus-key", key)?;
        }
        // Certificate files without TLS would have no effect, so they require it.
        let has_tls_files = files.root_certs.is_some() || files.client_cert.is_some();
        let require_tls = has_tls_files || servers.iter().any(|server| server.scheme() == "tls");
        let sends_secret = matches!(identity, NatsIdentity::Token(_) | NatsIdentity::User { .. });
        let exposes_secret = sends_secret && !require_tls && !servers.iter().all(is_loopback);
        let servers = servers.iter().map(strip_credentials).collect();
        Ok(Self {
            servers,
            identity,
            require_tls,
            exposes_secret,
        })
    }
}

fn parse_server_url(text: &str) -> Result<Url, String> {
    let invalid_url = || "a server of it is not a nats:// or tls:// URL".to_owned();
    let text = text.trim();
    let url = if text.contains("://") {
        Url::parse(text)
    } else {
        Url::parse(&format!("nats://{text}"))
    };
    let url = url.map_err(|_| invalid_url())?;
    let is_valid = matches!(url.scheme(), "nats" | "tls")
        && url.host().is_some()
        && matches!(url.path(), "" | "/");
    if url.query().is_some() || url.fragment().is_some() {
        return Err("its URL takes no parameters: what else there is to say has settings that begin with --bus".into());
    }
    is_valid.then_some(url).ok_or_else(invalid_url)
}

/// The credentials in the URLs: a user with a password, or a token without one. One URL may give them for all.
fn parse_identity(servers: &[Url]) -> Result<NatsIdentity, String> {
    let mut identity = NatsIdentity::Anonymous;
    for server in servers
        .iter()
        .filter(|server| !server.username().is_empty() || server.password().is_some())
    {
        let name = decode_percent(server.username());
        let url_identity = match server.password() {
            Some(password) => NatsIdentity::User {
                name,
                password: Secret::new(decode_percent(password)),
            },
            None => NatsIdentity::Token(Secret::new(name)),
        };
        if identity != NatsIdentity::Anonymous && identity != url_identity {
            return Err(
                "its servers are named with different users: they are to know us by one".into(),
            );
        }
        identity = url_identity;
    }
    Ok(identity)
}

fn decode_percent(text: &str) -> String {
    let pair = format!("={}", text.replace('+', "%2B"));
    url::form_urlencoded::parse(pair.as_bytes())
        .map(|(_, value)| value.into_owned())
        .next()
        .unwrap_or_default()
}

/// The address without credentials.
fn strip_credentials(server: &Url) -> String {
    let host = server.host_str().unwrap_or_default();
    format!(
        "{}://{host}:{}",
        server.scheme(),
        server.port().unwrap_or(4222)
    )
}

fn is_loopback(server: &Url) -> bool {
    match server.host() {
        // For a scheme that is not special, the URL parser leaves IP addresses as domain names.
        Some(Host::Domain(name)) => {
            name == "localhost"
                || name
                    .parse::<std::net::IpAddr>()
                    .is_ok_and(|ip| ip.is_loopback())
        }
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> NatsAccess {
        NatsAccess::load(&Secret::new(url), &BusFiles::default())
            .unwrap_or_else(|refusal| panic!("{url}: {refusal}"))
    }

    fn refused(url: &str, files: &BusFiles) -> String {
        NatsAccess::load(&Secret::new(url), files)
            .map(drop)
            .unwrap_err()
    }

    #[test]
    fn several_servers_are_given_one_by_one_and_without_what_is_secret() {
        let access = read("nats://hub:a%2Cb%40c@one:4222, two ,nats://[2001:db8::1]:4333/");
        assert_eq!(
            access.servers,
            [
                "nats://one:4222",
                "nats://two:4222",
                "nats://[2001:db8::1]:4333"
            ]
        );
        assert_eq!(
            access.identity,
            NatsIdentity::User {
                name: "hub".into(),
                password: Secret::new("a,b@c")
            }
        );
        assert_eq!(
            read("tls://one,nats://two").servers,
            ["tls://one:4222", "nats://two:4222"]
        );
        assert_eq!(
            read("nats://a%2Bto+ken@one").identity,
            NatsIdentity::Token(Secret::new("a+to+ken"))
        );
    }

    // D-91
    #[test]
    fn one_encrypted_server_makes_all_of_them_so_and_a_secret_in_the_clear_is_known() {
        assert!(read("tls://one,nats://two").require_tls && !read("nats://one,two").require_tls);
        for (url, exposed) in [
            ("nats://hub:word@one", true),
            ("nats://token@127.0.0.1:4222,one", true),
            ("nats://hub:word@127.0.0.1:4222,localhost", false),
            ("nats://hub:word@[::1]:4222", false),
            ("tls://hub:word@one", false),
            ("nats://one", false),
        ] {
            assert_eq!(read(url).exposes_secret, exposed, "{url}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_the_url() {
        let none = BusFiles::default();
        for url in [
            "hidden:hidden@",
            "ws://hidden:hidden@one",
            "nats://hidden:hidden@one,http://two",
            "nats://hidden:hidden@one/a",
            "tls://hidden:hidden@one?ca=a.pem",
            "nats://hidden:hidden@one,nats://hidden2:hidden@two",
            "nats://hidden@one:hidden",
            "",
        ] {
            let refusal = refused(url, &none);
            assert!(!refusal.contains("hidden"), "{url}: {refusal}");
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file.creds");
        let creds = BusFiles {
            credentials: Some(path.clone()),
            ..BusFiles::default()
        };
        assert!(refused("nats://one", &creds).contains("file.creds"));
        std::fs::write(&path, "hidden").unwrap();
        assert!(refused("nats://hub:word@one", &creds).contains("--bus-credentials"));
        let roots = BusFiles {
            root_certs: Some(path.clone()),
            ..BusFiles::default()
        };
        assert!(refused("tls://one", &roots).contains("--bus-root-cert"));
        let own = BusFiles {
            client_cert: Some((path.clone(), path)),
            ..BusFiles::default()
        };
        assert!(refused("tls://one", &own).contains("--bus-cert"));
    }
}
