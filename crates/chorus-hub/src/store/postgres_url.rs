//! Parses a PostgreSQL URL: server, credentials and TLS parameters, with TLS verified by default for remote servers (D-91).

use super::postgres_tls::{CertificateTrust, PostgresTls};
use std::path::PathBuf;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// The driver's error text for a server without TLS.
const NO_TLS_ERROR: &str = "server does not support TLS";

/// A parsed URL.
pub(super) struct PostgresUrl {
    pub config: Config,
    pub tls: PostgresTls,
    /// The URL has no `sslmode`, and TLS is required because the server is on another machine.
    tls_assumed: bool,
}

/// The values of libpq's `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsMode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// The URL parameters that the driver does not support, or supports only in part.
#[derive(Default)]
struct TlsParams {
    mode: Option<TlsMode>,
    root_file: Option<PathBuf>,
    certificate_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
}

impl PostgresUrl {
    /// An error names the wrong parameter and quotes nothing of the URL, because the URL contains the password.
    pub fn parse(url: &str) -> Result<Self, String> {
        let after_scheme = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme));
        let after_scheme = after_scheme.ok_or("the database URL is not a postgres:// URL")?;
        let after_credentials = after_scheme
            .split_once('@')
            .map_or(after_scheme, |(_, after)| after);
        // Part of a password would be parsed as a host or parameter, and would then appear in an error.
        if after_credentials.contains('@') {
            return Err(
                "the database URL has more than one @: in a user or a password it is %40".into(),
            );
        }
        let query = after_credentials
            .split_once('?')
            .map_or("", |(_, query)| query);
        let (tls_params, driver_params) = TlsParams::from_query(query)?;
        let plain = url.strip_suffix(query).unwrap_or(url).trim_end_matches('?');
        let plain = if driver_params.is_empty() {
            plain.to_owned()
        } else {
            format!("{plain}?{}", driver_params.join("&"))
        };
        let mut config: Config = plain.parse().map_err(describe_url_error)?;
        let mode = tls_params.mode.unwrap_or(if is_local_server(&config) {
            TlsMode::Prefer
        } else {
            TlsMode::VerifyFull
        });
        let tls_assumed = tls_params.mode.is_none() && mode == TlsMode::VerifyFull;
        // A Unix socket does not leave the machine, and PostgreSQL does not support TLS on it.
        let mode = if is_unix_socket(&config) {
            TlsMode::Disable
        } else {
            mode
        };
        config.ssl_mode(match mode {
            TlsMode::Disable => SslMode::Disable,
            TlsMode::Prefer => SslMode::Prefer,
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => SslMode::Require,
        });
        Ok(Self {
            config,
            tls: tls_params.into_tls(mode)?,
            tls_assumed,
        })
    }

    /// Advice for an error caused by TLS that the URL did not ask for.
    pub fn tls_advice(&self, failure: &str) -> &'static str {
        if self.tls_assumed && failure.contains(NO_TLS_ERROR) {
            "; it is on another machine, so the line has to be encrypted: switch TLS on there, or add sslmode=disable to the URL"
        } else {
            ""
        }
    }
}

impl TlsParams {
    /// Splits the query into the TLS parameters and those left for the driver.
    fn from_query(query: &str) -> Result<(Self, Vec<&str>), String> {
        let mut tls_params = Self::default();
        let mut driver_params = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let file = || -> Result<Option<PathBuf>, String> {
                let value = decode_value(value);
                if value.is_empty() {
                    return Err(format!("the database URL: {name} names no file"));
                }
                Ok(Some(value.into()))
            };
            match name {
                "sslmode" => tls_params.mode = Some(TlsMode::parse(&decode_value(value))?),
                "sslrootcert" => tls_params.root_file = file()?,
                "sslcert" => tls_params.certificate_file = file()?,
                "sslkey" => tls_params.key_file = file()?,
                _ => driver_params.push(pair),
            }
        }
        // In libpq `system` means the root certificates of the machine, which are the default here.
        tls_params.root_file = tls_params
            .root_file
            .filter(|roots| roots.as_os_str() != "system");
        Ok((tls_params, driver_params))
    }

    fn into_tls(self, mode: TlsMode) -> Result<PostgresTls, String> {
        let trust = match (mode, self.root_file) {
            (TlsMode::VerifyFull, roots) => CertificateTrust::MatchingName(roots),
            // As in libpq: with an sslrootcert, `require` verifies the issuer too.
            (TlsMode::Require | TlsMode::VerifyCa, Some(roots)) => {
                CertificateTrust::TrustedIssuer(roots)
            }
            (TlsMode::VerifyCa, None) => {
                let why = "with the machine's roots any certificate would do";
                return Err(format!(
                    "the database URL: sslmode=verify-ca needs an sslrootcert, since {why}"
                ));
            }
            (TlsMode::Disable | TlsMode::Prefer | TlsMode::Require, _) => {
                CertificateTrust::AnyCertificate
            }
        };
        let client_identity = match (self.certificate_file, self.key_file) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                return Err("the database URL: sslcert and sslkey belong together".into());
            }
        };
        Ok(PostgresTls {
            trust,
            client_identity,
        })
    }
}

impl TlsMode {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "disable" => TlsMode::Disable,
            "prefer" => TlsMode::Prefer,
            "require" => TlsMode::Require,
            "verify-ca" => TlsMode::VerifyCa,
            "verify-full" => TlsMode::VerifyFull,
            _ => {
                let known = "disable, prefer, require, verify-ca or verify-full";
                return Err(format!("the database URL: sslmode is {known}"));
            }
        })
    }
}

/// Decodes percent escapes; as in libpq, a plus sign is not a space.
fn decode_value(value: &str) -> String {
    let pair = format!("={}", value.replace('+', "%2B"));
    url::form_urlencoded::parse(pair.as_bytes())
        .map(|(_, value)| value.into_owned())
        .next()
        .unwrap_or_default()
}

/// Names the wrong parameter from the driver's error. A text that is not a parameter name may be part of a password, so it is
/// left out.
fn describe_url_error(error: tokio_postgres::Error) -> String {
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

/// Whether all servers of the URL are on this machine.
fn is_local_server(config: &Config) -> bool {
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

fn is_unix_socket(config: &Config) -> bool {
    let hosts = config.get_hosts();
    !hosts.is_empty()
        && config.get_hostaddrs().is_empty()
        && hosts.iter().all(|host| matches!(host, Host::Unix(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_tls(url: &str) -> (SslMode, CertificateTrust) {
        let parsed = PostgresUrl::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
        (parsed.config.get_ssl_mode(), parsed.tls.trust)
    }

    fn parse_error(url: &str) -> String {
        PostgresUrl::parse(url).map(drop).unwrap_err()
    }

    // D-91
    #[test]
    fn a_remote_server_is_verified_by_name_unless_the_url_sets_sslmode() {
        for url in [
            "postgres://hub:word@db.example/chorus",
            "postgresql://hub@192.0.2.7",
            "postgres://hub@[2001:db8::1]:5433/chorus?connect_timeout=3",
            "postgres://hub@localhost,db.example/chorus",
            "postgres://hub@localhost/chorus?hostaddr=192.0.2.7",
        ] {
            assert_eq!(
                parse_tls(url),
                (SslMode::Require, CertificateTrust::MatchingName(None)),
                "{url}"
            );
        }
        for url in [
            "postgres://hub@localhost/chorus",
            "postgres://hub@127.0.0.1:5432",
            "postgres://hub@[::1]/chorus",
        ] {
            assert_eq!(
                parse_tls(url),
                (SslMode::Prefer, CertificateTrust::AnyCertificate),
                "{url}"
            );
        }
        let plain = (SslMode::Disable, CertificateTrust::AnyCertificate);
        assert_eq!(
            parse_tls("postgres://hub@%2Frun%2Fpostgresql/chorus"),
            plain
        );
        assert_eq!(
            parse_tls("postgres://hub@%2Frun%2Fpostgresql/chorus?sslmode=require"),
            plain
        );
        assert_eq!(
            parse_tls("postgres://hub@db.example/chorus?sslmode=disable"),
            plain
        );
        assert_eq!(
            parse_tls("postgres://hub@db.example/chorus?sslmode=prefer"),
            (SslMode::Prefer, CertificateTrust::AnyCertificate)
        );
        assert_eq!(
            parse_tls("postgres://hub@db.example/chorus?sslmode=require"),
            (SslMode::Require, CertificateTrust::AnyCertificate)
        );
    }

    #[test]
    fn sslrootcert_is_used_for_verification() {
        let root = |name: &str| PathBuf::from(name);
        let url = "postgres://hub@db.example/chorus?connect_timeout=3&sslrootcert=%2Fetc%2Fa+b.pem";
        assert_eq!(
            parse_tls(url),
            (
                SslMode::Require,
                CertificateTrust::MatchingName(Some(root("/etc/a+b.pem")))
            )
        );
        for mode in ["require", "verify-ca"] {
            let url = format!("postgres://hub@localhost/chorus?sslrootcert=ca.pem&sslmode={mode}");
            assert_eq!(
                parse_tls(&url),
                (
                    SslMode::Require,
                    CertificateTrust::TrustedIssuer(root("ca.pem"))
                ),
                "{mode}"
            );
        }
        let url = "postgres://hub@localhost/chorus?sslmode=verify-full&sslrootcert=system";
        assert_eq!(
            parse_tls(url),
            (SslMode::Require, CertificateTrust::MatchingName(None))
        );
    }

    #[test]
    fn an_error_names_the_parameter_and_quotes_nothing_of_the_url() {
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
            let error = parse_error(&format!("postgres://hub:hidden@db.example/chorus?{query}"));
            assert!(
                error.contains(clue) && !error.contains("hidden"),
                "{query}: {error}"
            );
        }
        for url in [
            "postgres://hub:hid@den?x=1@db/chorus",
            "mysql://hub:hidden@db",
            "host=db password=hidden",
            "hidden",
        ] {
            let error = parse_error(url);
            assert!(
                !error.contains("hid") && !error.contains("den") && !error.contains('x'),
                "{url}: {error}"
            );
        }
    }
}
