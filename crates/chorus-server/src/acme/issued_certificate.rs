//! A certificate with its key, as an authority issued it and as it is kept in a file.

use chorus_wire::time::UnixMicros;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

/// Longest wait between two certificates that is kept even when the new one should be renewed at once, as with a clock that is
/// wrong: authorities issue few certificates for the same names in a week.
const MAX_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);

/// A usable certificate. Its key does not print.
pub struct IssuedCertificate {
    pub certified_key: Arc<CertifiedKey>,
    pub not_before: UnixMicros,
    pub not_after: UnixMicros,
    names: BTreeSet<String>,
}

impl IssuedCertificate {
    /// Parses a key and its chain. An error repeats nothing of the text, which has a key.
    pub fn parse(pem: &str) -> Result<Self, &'static str> {
        let chain = CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(|_| "it has a certificate that cannot be read")?;
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| "it has no readable private key")?;
        let leaf = chain.first().ok_or("it has no certificate")?;
        let leaf = Certificate::from_der(leaf).map_err(|_| "its certificate cannot be read")?;
        let validity = leaf.tbs_certificate().validity();
        let to_micros = |time: &x509_cert::time::Time| {
            UnixMicros(i64::try_from(time.to_unix_duration().as_micros()).unwrap_or(i64::MAX))
        };
        let not_before = to_micros(&validity.not_before);
        let not_after = to_micros(&validity.not_after);
        let names = read_names(&leaf).ok_or("its certificate has no names")?;
        let certified_key = CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map_err(|_| "its certificate and key do not go together")?;
        Ok(Self {
            certified_key: Arc::new(certified_key),
            not_before,
            not_after,
            names,
        })
    }

    /// Whether it has exactly these names.
    pub fn is_for<'a>(&self, domains: impl Iterator<Item = &'a str>) -> bool {
        self.names
            .iter()
            .map(String::as_str)
            .eq(domains.collect::<BTreeSet<&str>>())
    }

    /// Whether it has one of these names and has not expired.
    pub fn serves_one_of<'a>(
        &self,
        mut domains: impl Iterator<Item = &'a str>,
        now: UnixMicros,
    ) -> bool {
        self.not_after > now && domains.any(|domain| self.names.contains(domain))
    }

    /// Two thirds of its lifetime: the last third is for the authority or this machine being away.
    pub fn renewal_at(&self) -> UnixMicros {
        UnixMicros(self.not_before.0 + self.lifetime() / 3 * 2)
    }

    /// When the next one is ordered after this was issued at `now`.
    pub fn renewal_after_issue(&self, now: UnixMicros) -> UnixMicros {
        let pause = (self.lifetime() / 6).min(MAX_PAUSE.as_micros() as i64);
        UnixMicros(self.renewal_at().0.max(now.0 + pause))
    }

    fn lifetime(&self) -> i64 {
        (self.not_after.0 - self.not_before.0).max(0)
    }
}

fn read_names(leaf: &Certificate) -> Option<BTreeSet<String>> {
    let (_, names) = leaf
        .tbs_certificate()
        .get_extension::<SubjectAltName>()
        .ok()??;
    let names = names.0.iter().filter_map(|name| match name {
        GeneralName::DnsName(name) => Some(name.to_string().to_lowercase()),
        GeneralName::OtherName(_)
        | GeneralName::Rfc822Name(_)
        | GeneralName::DirectoryName(_)
        | GeneralName::EdiPartyName(_)
        | GeneralName::UniformResourceIdentifier(_)
        | GeneralName::IpAddress(_)
        | GeneralName::RegisteredId(_) => None,
    });
    Some(names.collect())
}
