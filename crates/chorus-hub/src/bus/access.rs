//! How the bus is reached: its servers, who we are there, and whom we take for them (D-91).

use crate::pem;
use chorus_wire::secret::Secret;
use std::path::PathBuf;
use url::{Host, Url};

/// What of it is in files.
#[derive(Clone, Debug, Default)]
pub struct BusFiles {
    /// Who we are: a NATS credentials file, with a token and the seed that proves it ours.
    pub credentials: Option<PathBuf>,
    /// Whose certificates are trusted, PEM; the machine's without it.
    pub roots: Option<PathBuf>,
    /// Our own certificate and its key, PEM.
    pub own: Option<(PathBuf, PathBuf)>,
}

/// Who we say we are.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Who {
    Nobody,
    Token(Secret),
    User {
        name: String,
        password: Secret,
    },
    /// The text of a credentials file.
    Credentials(Secret),
}

/// What was asked for, checked.
pub(super) struct Access {
    /// Without user and password: what connects prints the addresses in its log.
    pub servers: Vec<String>,
    pub who: Who,
    /// Nothing is said before the line is encrypted, to none of the servers.
    pub encrypted: bool,
    /// A secret would be told to another machine as it is, should the server not ask for TLS by itself.
    pub exposed: bool,
}

impl Access {
    /// `url` may name several servers, separated by commas. An error quotes nothing of it.
    pub fn read(url: &Secret, files: &BusFiles) -> Result<Self, String> {
        let servers: Vec<Url> = url
            .expose()
            .split(',')
            .map(server)
            .collect::<Result<_, _>>()?;
        let who = match &files.credentials {
            None => told(&servers)?,
            Some(_) if told(&servers)? != Who::Nobody => {
                return Err(
                    "its URL has a user and --bus-credentials another: one of them says who we are"
                        .into(),
                );
            }
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|e| format!("{}: {e}", path.display()))?;
                Who::Credentials(Secret::new(text))
            }
        };
        if let Some(roots) = &files.roots {
            pem::certificates("--bus-root-cert", roots)?;
        }
        if let Some((certificate, key)) = &files.own {
            pem::certificates("--bus-cert", certificate)?;
            pem::key("--bus-key", key)?;
        }
        // Whoever says whom to trust does not mean to talk to just anybody.
        let files_say = files.roots.is_some() || files.own.is_some();
        let encrypted = files_say || servers.iter().any(|server| server.scheme() == "tls");
        let telling = matches!(who, Who::Token(_) | Who::User { .. });
        let exposed = telling && !encrypted && !servers.iter().all(is_here);
        let servers = servers.iter().map(bare).collect();
        Ok(Self {
            servers,
            who,
            encrypted,
            exposed,
        })
    }
}

fn server(text: &str) -> Result<Url, String> {
    let wrong = || "a server of it is not a nats:// or tls:// URL".to_owned();
    let text = text.trim();
    let url = if text.contains("://") {
        Url::parse(text)
    } else {
        Url::parse(&format!("nats://{text}"))
    };
    let url = url.map_err(|_| wrong())?;
    let good = matches!(url.scheme(), "nats" | "tls")
        && url.host().is_some()
        && matches!(url.path(), "" | "/");
    if url.query().is_some() || url.fragment().is_some() {
        return Err("its URL takes no parameters: what else there is to say has settings that begin with --bus".into());
    }
    good.then_some(url).ok_or_else(wrong)
}

/// Who the URLs say we are: a user with a password, or a token where there is no password. One of them may say it for all.
fn told(servers: &[Url]) -> Result<Who, String> {
    let mut who = Who::Nobody;
    for server in servers
        .iter()
        .filter(|server| !server.username().is_empty() || server.password().is_some())
    {
        let name = decoded(server.username());
        let said = match server.password() {
            Some(password) => Who::User {
                name,
                password: Secret::new(decoded(password)),
            },
            None => Who::Token(Secret::new(name)),
        };
        if who != Who::Nobody && who != said {
            return Err(
                "its servers are named with different users: they are to know us by one".into(),
            );
        }
        who = said;
    }
    Ok(who)
}

fn decoded(text: &str) -> String {
    let pair = format!("={}", text.replace('+', "%2B"));
    url::form_urlencoded::parse(pair.as_bytes())
        .map(|(_, value)| value.into_owned())
        .next()
        .unwrap_or_default()
}

/// The address alone.
fn bare(server: &Url) -> String {
    let host = server.host_str().unwrap_or_default();
    format!(
        "{}://{host}:{}",
        server.scheme(),
        server.port().unwrap_or(4222)
    )
}

fn is_here(server: &Url) -> bool {
    match server.host() {
        // A scheme that browsers do not know has numbers as names.
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

    fn read(url: &str) -> Access {
        Access::read(&Secret::new(url), &BusFiles::default())
            .unwrap_or_else(|refusal| panic!("{url}: {refusal}"))
    }

    fn refused(url: &str, files: &BusFiles) -> String {
        Access::read(&Secret::new(url), files)
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
            access.who,
            Who::User {
                name: "hub".into(),
                password: Secret::new("a,b@c")
            }
        );
        assert_eq!(
            read("tls://one,nats://two").servers,
            ["tls://one:4222", "nats://two:4222"]
        );
        assert_eq!(
            read("nats://a%2Bto+ken@one").who,
            Who::Token(Secret::new("a+to+ken"))
        );
    }

    // D-91
    #[test]
    fn one_encrypted_server_makes_all_of_them_so_and_a_secret_in_the_clear_is_known() {
        assert!(read("tls://one,nats://two").encrypted && !read("nats://one,two").encrypted);
        for (url, exposed) in [
            ("nats://hub:word@one", true),
            ("nats://token@127.0.0.1:4222,one", true),
            ("nats://hub:word@127.0.0.1:4222,localhost", false),
            ("nats://hub:word@[::1]:4222", false),
            ("tls://hub:word@one", false),
            ("nats://one", false),
        ] {
            assert_eq!(read(url).exposed, exposed, "{url}");
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
            roots: Some(path.clone()),
            ..BusFiles::default()
        };
        assert!(refused("tls://one", &roots).contains("--bus-root-cert"));
        let own = BusFiles {
            own: Some((path.clone(), path)),
            ..BusFiles::default()
        };
        assert!(refused("tls://one", &own).contains("--bus-cert"));
    }
}
