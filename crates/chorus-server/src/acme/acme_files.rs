//! What is kept in the data directory between starts: the account, the certificate with its key, and failed attempts.

use super::acme_settings::AcmeSettings;
use super::attempt_limit::AttemptHistory;
use super::issued_certificate::IssuedCertificate;
use instant_acme::AccountCredentials;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The folder in the data directory.
const ACME_FOLDER: &str = "acme";
const ACCOUNT_FILE: &str = "account.json";
/// Key and chain in one file, so that they are replaced together.
const CERTIFICATE_FILE: &str = "certificate.pem";
const ATTEMPTS_FILE: &str = "attempts.json";

/// The hub's account at an authority. It has a private key and does not print.
#[derive(Serialize, Deserialize)]
pub struct KeptAccount {
    /// The contact that the authority was told.
    pub email: Option<String>,
    pub credentials: AccountCredentials,
}

/// The files for one directory: a certificate of a test authority is never served in the place of a real one.
#[derive(Clone, Debug)]
pub struct AcmeFiles {
    folder: PathBuf,
}

impl AcmeFiles {
    pub fn new(data_dir: &Path, settings: &AcmeSettings) -> Self {
        let digest = Sha256::digest(settings.directory.as_str());
        let digest: String = digest.iter().take(4).map(|b| format!("{b:02x}")).collect();
        let host: String = settings
            .directory
            .host()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        Self {
            folder: data_dir.join(ACME_FOLDER).join(format!("{host}-{digest}")),
        }
    }

    pub fn read_account(&self) -> Result<Option<KeptAccount>, String> {
        self.read_json(ACCOUNT_FILE)
    }

    pub fn write_account(&self, account: &KeptAccount) -> Result<(), String> {
        self.write_json(ACCOUNT_FILE, account)
    }

    /// Forgets an account that the authority does not know any more.
    pub fn remove_account(&self) {
        let _ = fs::remove_file(self.folder.join(ACCOUNT_FILE));
    }

    pub fn read_attempts(&self) -> Result<AttemptHistory, String> {
        Ok(self.read_json(ATTEMPTS_FILE)?.unwrap_or_default())
    }

    pub fn write_attempts(&self, history: &AttemptHistory) -> Result<(), String> {
        self.write_json(ATTEMPTS_FILE, history)
    }

    pub fn read_certificate(&self) -> Result<Option<IssuedCertificate>, String> {
        let path = self.folder.join(CERTIFICATE_FILE);
        match fs::read_to_string(&path) {
            Ok(pem) => IssuedCertificate::parse(&pem)
                .map(Some)
                .map_err(|cause| format!("{}: {cause}", path.display())),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(format!("{}: {e}", path.display())),
        }
    }

    pub fn write_certificate(&self, pem: &str) -> Result<(), String> {
        self.replace_file(CERTIFICATE_FILE, pem.as_bytes())
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, String> {
        let path = self.folder.join(name);
        match fs::read(&path) {
            // The parser's message could repeat bytes of a key.
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map(Some)
                .map_err(|_| format!("{}: it cannot be read", path.display())),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(format!("{}: {e}", path.display())),
        }
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), String> {
        let bytes = serde_json::to_vec(value).map_err(|e| format!("{name}: {e}"))?;
        self.replace_file(name, &bytes)
    }

    /// Writes a file that only its owner can read: whole, or not at all.
    fn replace_file(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.folder.join(name);
        self.try_replace_file(&path, bytes)
            .map_err(|e| format!("{}: {e}", path.display()))
    }

    fn try_replace_file(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        let draft = path.with_extension("new");
        let _ = fs::remove_file(&draft);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        File::open(&self.folder)?.sync_all()
    }
}
