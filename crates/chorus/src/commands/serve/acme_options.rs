//! Where the certificate of `chorus serve` comes from: files, or an authority.

use crate::fail::Fail;
use chorus_server::{
    AcmeSettings, ContactEmail, DirectoryUrl, DomainName, MAX_DOMAINS, ServerSettings, TlsSource,
};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The port on which an authority checks a name (RFC 8737).
const HTTPS_PORT: u16 = 443;

/// The options that begin with `--tls-acme`.
pub struct AcmeOptions {
    pub domains: Vec<DomainName>,
    pub email: Option<ContactEmail>,
    pub directory: Option<DirectoryUrl>,
    pub directory_roots: Option<PathBuf>,
}

/// One source or none. Two, or details of a source that was not chosen, are a mistake that a hub must not guess about.
pub fn choose_tls_source(
    files: Option<(PathBuf, PathBuf)>,
    acme: AcmeOptions,
) -> Result<Option<TlsSource>, Fail> {
    if acme.domains.is_empty() {
        let has_details =
            acme.email.is_some() || acme.directory.is_some() || acme.directory_roots.is_some();
        return match has_details {
            true => Err(Fail::usage_error(
                "--tls-acme-email, --tls-acme-directory and --tls-acme-ca belong to --tls-acme DOMAIN: give it too",
            )),
            false => Ok(files.map(|(chain, key)| TlsSource::Files { chain, key })),
        };
    }
    if files.is_some() {
        return Err(Fail::usage_error(
            "--tls-acme gets the hub's certificate, and --tls-cert and --tls-key name another: leave one of them out",
        ));
    }
    let mut domains = Vec::new();
    for domain in acme.domains {
        if !domains.contains(&domain) {
            domains.push(domain);
        }
    }
    if domains.len() > MAX_DOMAINS {
        return Err(Fail::usage_error(format!(
            "--tls-acme names {} hosts, and a certificate has at most {MAX_DOMAINS}",
            domains.len()
        )));
    }
    Ok(Some(TlsSource::Acme(AcmeSettings {
        domains,
        email: acme.email,
        directory: acme.directory.unwrap_or_default(),
        directory_roots: acme.directory_roots,
    })))
}

/// Where a hub listens that was not told: on this machine only, except where an authority and the public must reach it.
pub fn default_address(tls: Option<&TlsSource>) -> SocketAddr {
    match tls {
        Some(TlsSource::Acme(_)) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, HTTPS_PORT)),
        Some(TlsSource::Files { .. }) | None => ServerSettings::with_data_dir("").listen,
    }
}

/// The authority's check reaches one of several hubs with a name, and only the one that ordered can answer it.
pub fn refuse_shared_name(tls: Option<&TlsSource>, has_bus: bool) -> Result<(), Fail> {
    match (tls, has_bus) {
        (Some(TlsSource::Acme(_)), true) => Err(Fail::usage_error(
            "--tls-acme is for a hub that runs alone: with --bus, put a proxy that has the certificate in front of the hubs, or give each --tls-cert and --tls-key",
        )),
        (Some(TlsSource::Acme(_) | TlsSource::Files { .. }) | None, _) => Ok(()),
    }
}
