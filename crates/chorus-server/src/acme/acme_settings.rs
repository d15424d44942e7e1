//! What an operator says about certificates from an authority: the names, the directory and the contact.

use instant_acme::LetsEncrypt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use url::{Host, Url};

/// Most names in one certificate, which is the limit of Let's Encrypt.
pub const MAX_DOMAINS: usize = 100;
/// Longest host name, in its ASCII form (RFC 1035).
const MAX_DOMAIN_LENGTH: usize = 253;
/// Longest label of a host name (RFC 1035).
const MAX_LABEL_LENGTH: usize = 63;

/// Where certificates come from, and for which names.
#[derive(Clone, Debug)]
pub struct AcmeSettings {
    /// The first name is the hub's own; the certificate has them all.
    pub domains: Vec<DomainName>,
    pub email: Option<ContactEmail>,
    pub directory: DirectoryUrl,
    /// Root certificates for the directory's own TLS, in PEM; those of the machine without it.
    pub directory_roots: Option<PathBuf>,
}

impl AcmeSettings {
    /// The names as a person reads them.
    pub fn describe_domains(&self) -> String {
        let names: Vec<&str> = self.domains.iter().map(DomainName::as_str).collect();
        names.join(", ")
    }
}

/// A host name for which an authority can check that it leads to this hub, in its ASCII form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainName(String);

impl DomainName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DomainName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('*') {
            return Err(format!(
                "{text} is a wildcard, which an authority gives only to those who can change its DNS: name each host, such as hub.example.com"
            ));
        }
        let not_a_name = |why: &str| {
            format!(
                "{text} is no host name for a certificate ({why}): it looks like hub.example.com"
            )
        };
        let name = match Host::parse(text) {
            Ok(Host::Domain(name)) => name,
            Ok(Host::Ipv4(_) | Host::Ipv6(_)) => return Err(not_a_name("it is an address")),
            Err(_) => return Err(not_a_name("it has characters that names do not have")),
        };
        if name.len() > MAX_DOMAIN_LENGTH {
            return Err(not_a_name("it is too long"));
        }
        if !name.contains('.') {
            return Err(not_a_name("it has no dot, so no authority can look it up"));
        }
        if !name.split('.').all(is_host_label) {
            return Err(not_a_name(
                "its parts have letters, digits and inner hyphens only, at most 63 each",
            ));
        }
        Ok(Self(name))
    }
}

fn is_host_label(label: &str) -> bool {
    let is_inner = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
    !label.is_empty()
        && label.len() <= MAX_LABEL_LENGTH
        && label.bytes().all(is_inner)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// An address to which an authority may write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactEmail(String);

impl ContactEmail {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ContactEmail {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |part: &str| {
            !part.is_empty()
                && !part
                    .contains(|c: char| c.is_whitespace() || c.is_control() || ",?&<>@".contains(c))
        };
        match text.rsplit_once('@') {
            Some((user, host)) if is_plain(user) && is_plain(host) => Ok(Self(text.to_owned())),
            _ => Err(format!(
                "{text} is no e-mail address, such as ops@example.com"
            )),
        }
    }
}

/// The URL at which an authority lists what it offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryUrl(Url);

impl DirectoryUrl {
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The host, as part of a folder's name.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or("directory")
    }

    /// Whether the directory, and all that it names, must be https.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }
}

impl Default for DirectoryUrl {
    fn default() -> Self {
        let production = LetsEncrypt::Production.url();
        Self(Url::parse(production).expect("the library's own URL is one"))
    }
}

impl FromStr for DirectoryUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let not_a_directory = || {
            format!(
                "{text} is no directory of an authority: it is an https URL, such as {}",
                LetsEncrypt::Staging.url()
            )
        };
        let url = Url::parse(text).map_err(|_| not_a_directory())?;
        let has_secrets = !url.username().is_empty() || url.password().is_some();
        // Without TLS another machine on the way could answer in the authority's place.
        let is_safe = match url.scheme() {
            "https" => url.host().is_some(),
            "http" => is_loopback(&url),
            _ => false,
        };
        match is_safe && !has_secrets {
            true => Ok(Self(url)),
            false => Err(not_a_directory()),
        }
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => IpAddr::from(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::from(ip).is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // D-117
    #[test]
    fn a_name_is_one_that_an_authority_can_look_up() {
        for (text, name) in [
            ("hub.example.com", "hub.example.com"),
            ("Hub.Example.COM", "hub.example.com"),
            ("bücher.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(text.parse::<DomainName>().unwrap().as_str(), name, "{text}");
        }
        let long_label = format!("{}.example", "a".repeat(64));
        let long_name = "a.".repeat(130) + "example";
        for (bad, why) in [
            ("*.example.com", "wildcard"),
            ("192.0.2.7", "address"),
            ("[2001:db8::7]", "address"),
            ("localhost", "no dot"),
            ("", "characters"),
            ("hub.example.com.", "parts"),
            ("hub..example", "parts"),
            ("my_hub.example", "parts"),
            ("-hub.example", "parts"),
            ("https://hub.example", "characters"),
            ("hub.example:443", "characters"),
            (&long_label, "parts"),
            (&long_name, "too long"),
        ] {
            let error = bad.parse::<DomainName>().unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    // D-117
    #[test]
    fn a_directory_is_https_or_on_this_machine() {
        for good in [
            "https://acme-staging-v02.api.letsencrypt.org/directory",
            "http://127.0.0.1:14000/dir",
            "http://[::1]:14000/dir",
        ] {
            assert!(good.parse::<DirectoryUrl>().is_ok(), "{good}");
        }
        for bad in [
            "http://ca.example/directory",
            "ca.example",
            "ftp://127.0.0.1/",
            "https://user:word@ca.example/",
        ] {
            assert!(bad.parse::<DirectoryUrl>().is_err(), "{bad}");
        }
        assert!(DirectoryUrl::default().as_str().contains("letsencrypt.org"));
    }

    #[test]
    fn a_contact_is_one_address() {
        assert!("ops@example.com".parse::<ContactEmail>().is_ok());
        for bad in ["", "ops", "a@b,c@d", "mailto:a@b?x", "a @b.example"] {
            assert!(bad.parse::<ContactEmail>().is_err(), "{bad}");
        }
    }
}
