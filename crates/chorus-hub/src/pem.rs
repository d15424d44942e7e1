//! Certificates and keys from PEM files, refused with a sentence that names the setting and the file.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;

/// Every certificate of a file; one without any is refused.
pub(crate) fn read_certificates(
    what: &str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let found =
        CertificateDer::pem_file_iter(path).and_then(|found| found.collect::<Result<Vec<_>, _>>());
    let found = found.map_err(|e| format!("{what} {} cannot be read: {e}", path.display()))?;
    match found.is_empty() {
        true => Err(format!("{what} {} holds no certificate", path.display())),
        false => Ok(found),
    }
}

/// The reason stays general: a parser's complaint could repeat bytes of the key.
pub(crate) fn read_private_key(what: &str, path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path)
        .map_err(|_| format!("{what} {} is no readable PEM private key", path.display()))
}
