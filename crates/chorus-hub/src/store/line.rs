//! What a database URL says: where the server is, and how the line to it is kept from others (D-91).

use super::tls::{Tls, Trust};
use std::path::PathBuf;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// The driver's word for a server that has no TLS to offer.
const NO_TLS: &str = "server does not support TLS";

/// A URL that was understood.
pub(super) struct Line {
    pub config: Config,
    pub tls: Tls,
    /// Nobody asked for TLS: it is because the server is on another machine.
    assumed: bool,
}

/// libpq's modes, by its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// The parameters that the driver does not know, or knows less of.
#[derive(Default)]
struct Asked {
    mode: Option<Mode>,
    roots: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Line {
    /// An error names the parameter that is wrong, and quotes nothing of the URL.
    pub fn read(url: &str) -> Result<Self, String> {
        let place = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme));
        let place = place.ok_or("the database URL is not a postgres:// URL")?;
        let place = place.split_once('@').map_or(place, |(_, after)| after);
        // What is taken for a host or a parameter would be the rest of a password, and be named in an error.
        if place.contains('@') {
            return Err(
                "the database URL has more than one @: in a user or a password it is %40".into(),
            );
        }
        let query = place.split_once('?').map_or("", |(_, query)| query);
        let (asked, others) = Asked::among(query)?;
        let plain = url.strip_suffix(query).unwrap_or(url).trim_end_matches('?');
        let plain = if others.is_empty() {
            plain.to_owned()
        } else {
            format!("{plain}?{}", others.join("&"))
        };
        let mut config: Config = plain.parse().map_err(misread)?;
        let mode = asked.mode.unwrap_or(if is_here(&config) {
            Mode::Prefer
        } else {
            Mode::VerifyFull
        });
        let assumed = asked.mode.is_none() && mode == Mode::VerifyFull;
        // No other machine has a part in a socket of the file system, and PostgreSQL speaks no TLS on it.
        let mode = if is_file(&config) {
            Mode::Disable
        } else {
            mode
        };
        config.ssl_mode(match mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        Ok(Self {
            config,
            tls: asked.tls(mode)?,
            assumed,
        })
    }

    /// What to do about a failure that comes of what nobody asked for.
    pub fn advice(&self, failure: &str) -> &'static str {
        if self.assumed && failure.contains(NO_TLS) {
            "; it is on another machine, so the line has to be encrypted: switch TLS on there, or add sslmode=disable to the URL"
        } else {
            ""
        }
    }
}

impl Asked {
    /// Ours, and the parameters that are left for the driver.
    fn among(query: &str) -> Result<(Self, Vec<&str>), String> {
        let (mut asked, mut others) = (Self::default(), Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let file = || -> Result<Option<PathBuf>, String> {
                let value = decoded(value);
                if value.is_empty() {
                    return Err(format!("the database URL: {name} names no file"));
                }
                Ok(Some(value.into()))
            };
            match name {
                "sslmode" => asked.mode = Some(Mode::read(&decoded(value))?),
                "sslrootcert" => asked.roots = file()?,
                "sslcert" => asked.certificate = file()?,
                "sslkey" => asked.key = file()?,
                _ => others.push(pair),
            }
        }
        // libpq's word for the roots of the machine, which are what we go by anyway.
        asked.roots = asked.roots.filter(|roots| roots.as_os_str() != "system");
        Ok((asked, others))
    }

    fn tls(self, mode: Mode) -> Result<Tls, String> {
        let trust = match (mode, self.roots) {
            (Mode::VerifyFull, roots) => Trust::Name(roots),
            // As in libpq: whoever names a root wants it to count.
            (Mode::Require | Mode::VerifyCa, Some(roots)) => Trust::Issuer(roots),
            (Mode::VerifyCa, None) => {
                let why = "with the machine's roots anybody's certificate would do";
                return Err(format!(
                    "the database URL: sslmode=verify-ca needs an sslrootcert, since {why}"
                ));
            }
            (Mode::Disable | Mode::Prefer | Mode::Require, _) => Trust::Anybody,
        };
        let own = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err("the database URL: sslcert and sslkey belong together".into());
            }
        };
        Ok(Tls { trust, own })
    }
}

impl Mode {
    fn read(text: &str) -> Result<Self, String> {
        Ok(match text {
            "disable" => Mode::Disable,
            "prefer" => Mode::Prefer,
            "require" => Mode::Require,
            "verify-ca" => Mode::VerifyCa,
            "verify-full" => Mode::VerifyFull,
            _ => {
                let known = "disable, prefer, require, verify-ca or verify-full";
                return Err(format!("the database URL: sslmode is {known}"));
            }
        })
    }
}

/// As in libpq a plus sign is a plus sign.
fn decoded(value: &str) -> String {
    let pair = format!("={}", value.replace('+', "%2B"));
    url::form_urlencoded::parse(pair.as_bytes())
        .map(|(_, value)| value.into_owned())
        .next()
        .unwrap_or_default()
}

/// The driver names the parameter; a name that is none could be anything.
fn misread(error: tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(&error)
        .map(ToString::to_string)
        .unwrap_or_default();
    let name = cause
        .split('`')
        .nth(1)
        .filter(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
    match name {
        Some(name) if cause.starts_with("unknown") => {
            format!("the database URL: {name} is not a parameter we know")
        }
        Some(name) => format!("the database URL: {name} has no value that it can have"),
        None => "the database URL is not a postgres:// URL".into(),
    }
}

/// Whether what goes over the line stays on this machine.
fn is_here(config: &Config) -> bool {
    let local = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => match name.parse::<std::net::IpAddr>() {
            Ok(ip) => ip.to_canonical().is_loopback(),
            Err(_) => name == "localhost",
        },
    };
    match config.get_hostaddrs() {
        [] => config.get_hosts().iter().all(local),
        addresses => addresses.iter().all(|ip| ip.to_canonical().is_loopback()),
    }
}

fn is_file(config: &Config) -> bool {
    let hosts = config.get_hosts();
    !hosts.is_empty()
        && config.get_hostaddrs().is_empty()
        && hosts.iter().all(|host| matches!(host, Host::Unix(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> (SslMode, Trust) {
        let line = Line::read(url).unwrap_or_else(|refusal| panic!("{url}: {refusal}"));
        (line.config.get_ssl_mode(), line.tls.trust)
    }

    fn refused(url: &str) -> String {
        Line::read(url).map(drop).unwrap_err()
    }

    // D-91
    #[test]
    fn a_server_on_another_machine_has_to_prove_its_name_unless_the_url_says_otherwise() {
        for url in [
            "postgres://hub:word@db.example/chorus",
            "postgresql://hub@192.0.2.7",
            "postgres://hub@[2001:db8::1]:5433/chorus?connect_timeout=3",
            "postgres://hub@localhost,db.example/chorus",
            "postgres://hub@localhost/chorus?hostaddr=192.0.2.7",
        ] {
            assert_eq!(read(url), (SslMode::Require, Trust::Name(None)), "{url}");
        }
        for url in [
            "postgres://hub@localhost/chorus",
            "postgres://hub@127.0.0.1:5432",
            "postgres://hub@[::1]/chorus",
        ] {
            assert_eq!(read(url), (SslMode::Prefer, Trust::Anybody), "{url}");
        }
        let plain = (SslMode::Disable, Trust::Anybody);
        assert_eq!(read("postgres://hub@%2Frun%2Fpostgresql/chorus"), plain);
        assert_eq!(
            read("postgres://hub@%2Frun%2Fpostgresql/chorus?sslmode=require"),
            plain
        );
        assert_eq!(
            read("postgres://hub@db.example/chorus?sslmode=disable"),
            plain
        );
        assert_eq!(
            read("postgres://hub@db.example/chorus?sslmode=prefer"),
            (SslMode::Prefer, Trust::Anybody)
        );
        assert_eq!(
            read("postgres://hub@db.example/chorus?sslmode=require"),
            (SslMode::Require, Trust::Anybody)
        );
    }

    #[test]
    fn a_root_that_is_named_counts() {
        let root = |name: &str| PathBuf::from(name);
        let url = "postgres://hub@db.example/chorus?connect_timeout=3&sslrootcert=%2Fetc%2Fa+b.pem";
        assert_eq!(
            read(url),
            (SslMode::Require, Trust::Name(Some(root("/etc/a+b.pem"))))
        );
        for mode in ["require", "verify-ca"] {
            let url = format!("postgres://hub@localhost/chorus?sslrootcert=ca.pem&sslmode={mode}");
            assert_eq!(
                read(&url),
                (SslMode::Require, Trust::Issuer(root("ca.pem"))),
                "{mode}"
            );
        }
        let url = "postgres://hub@localhost/chorus?sslmode=verify-full&sslrootcert=system";
        assert_eq!(read(url), (SslMode::Require, Trust::Name(None)));
    }

    #[test]
    fn what_is_wrong_is_named_and_no_part_of_the_url_is_repeated() {
        for (query, clue) in [
            ("sslmode=verify", "sslmode"),
            ("sslmode=verify-ca", "sslrootcert"),
            ("sslrootcert=", "sslrootcert"),
            ("sslcert=a.pem", "sslkey"),
            ("sslcrl=a.pem", "sslcrl"),
            ("connect_timeout=hidden", "connect_timeout"),
            ("hidden-WORD=1", "postgres:// URL"),
            ("sslmode=disable&hidden", "postgres:// URL"),
        ] {
            let refusal = refused(&format!("postgres://hub:hidden@db.example/chorus?{query}"));
            assert!(
                refusal.contains(clue) && !refusal.contains("hidden"),
                "{query}: {refusal}"
            );
        }
        for url in [
            "postgres://hub:hid@den?x=1@db/chorus",
            "mysql://hub:hidden@db",
            "host=db password=hidden",
            "hidden",
        ] {
            let refusal = refused(url);
            assert!(
                !refusal.contains("hid") && !refusal.contains("den") && !refusal.contains('x'),
                "{url}: {refusal}"
            );
        }
    }
}
