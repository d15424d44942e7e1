//! Sealing: encryption at rest of secrets that the hub must use again, such as connection strings.

use crate::Result;
use crate::start_error::StartError;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use chorus_wire::{Error, secret::Secret};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The key file in the data directory.
pub(crate) const SEAL_KEY_FILE: &str = "seal.key";
/// The associated data of the cipher: a text sealed for another purpose does not open.
const ASSOCIATED_DATA: &[u8] = b"chorus channel 1";
const NONCE_BYTES: usize = 24;

/// The purpose of the key with which hubs authenticate their messages (D-106).
const BUS_KEY_INFO: &[u8] = b"chorus bus messages 1";
/// The purpose of the key that makes the secrets in URLs, which the hub recognises without storing them.
const URL_KEY_INFO: &[u8] = b"chorus secrets in urls 1";

/// The purpose of the key that tags the tokens of deliveries (D-122).
const DELIVERY_TOKEN_INFO: &[u8] = b"chorus delivery tokens 1";

/// What an operator can do about a key that is missing or wrong.
const RESTORE_KEY_ADVICE: &str = "put the key back (`seal.key` of the data directory, or the file of --seal-key-file), from a \
     backup if need be; if it is lost, run `chorus admin forget-seal-key` and add the channel members again that have connection strings";

/// What the database says about its sealed secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealedData {
    Nothing,
    /// Sealed by a hub that did not record its key.
    WithUnknownKey,
    /// Sealed with the key of this fingerprint.
    WithKey(u64),
}

/// The sealing key. It does not print.
pub(crate) struct SealKey {
    cipher: XChaCha20Poly1305,
    fingerprint: u64,
    bus_key: BusKey,
    url_key: [u8; 32],
    /// Keyed once; a clone of it starts each tag.
    delivery_token_mac: Hmac<Sha256>,
}

/// The key with which the hubs of a cluster authenticate their messages. It does not print.
#[derive(Clone)]
pub(crate) struct BusKey([u8; 32]);

impl BusKey {
    #[cfg(test)]
    pub fn from_bytes(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// An HMAC-SHA-256 with this key, which has no input yet.
    pub fn start_hmac(&self) -> Hmac<Sha256> {
        start_hmac(&self.0)
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey")
    }
}

impl SealKey {
    /// Reads the key file, or creates the default one in the data directory if the database has nothing sealed. A configured file
    /// must exist: a hub with a new key could not unseal what its peers have sealed.
    pub fn load_or_create(
        data_dir: &Path,
        configured_path: Option<&Path>,
        sealed: SealedData,
    ) -> std::result::Result<Self, StartError> {
        let default_path = data_dir.join(SEAL_KEY_FILE);
        let path = configured_path.unwrap_or(&default_path);
        let key_unusable = |cause: String| StartError::Store {
            what: format!("the seal key in {} cannot be used", path.display()),
            cause,
        };
        match std::fs::read_to_string(path) {
            Ok(text) => {
                let key = Self::parse(&text)
                    .ok_or_else(|| key_unusable("it is not 64 hexadecimal digits".into()))?;
                match sealed {
                    SealedData::WithKey(fingerprint) if fingerprint != key.fingerprint => {
                        Err(key_unusable(format!(
                            "the database was sealed with another key; {RESTORE_KEY_ADVICE}"
                        )))
                    }
                    SealedData::Nothing | SealedData::WithUnknownKey | SealedData::WithKey(_) => {
                        Ok(key)
                    }
                }
            }
            Err(e) if e.kind() == ErrorKind::NotFound && sealed != SealedData::Nothing => {
                Err(key_unusable(format!(
                    "it is not there, and the database has secrets sealed with it; {RESTORE_KEY_ADVICE}"
                )))
            }
            Err(e) if e.kind() == ErrorKind::NotFound && configured_path.is_none() => {
                let key: [u8; 32] = crate::random::random_value();
                write_key_file(path, &key).map_err(|e| key_unusable(e.to_string()))?;
                Ok(Self::from_key(&key))
            }
            Err(e) => Err(key_unusable(e.to_string())),
        }
    }

    pub(crate) fn from_key(key: &[u8; 32]) -> Self {
        let fingerprint = Sha256::new()
            .chain_update(b"chorus seal mark")
            .chain_update(key)
            .finalize();
        let fingerprint = fingerprint
            .iter()
            .take(8)
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        Self {
            cipher: XChaCha20Poly1305::new(&(*key).into()),
            fingerprint,
            bus_key: BusKey(derive_key(key, BUS_KEY_INFO)),
            url_key: derive_key(key, URL_KEY_INFO),
            delivery_token_mac: start_hmac(&derive_key(key, DELIVERY_TOKEN_INFO)),
        }
    }

    pub fn bus_key(&self) -> &BusKey {
        &self.bus_key
    }

    /// The secret of a URL that stands for these parts, in hexadecimal. The same parts give the same secret on every hub with
    /// this key, so it is not stored.
    pub fn derive_url_secret(&self, parts: &[&[u8]]) -> String {
        let secret = compute_hmac(&self.url_key, parts);
        secret.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The tag of a delivery's token with these parts.
    pub fn tag_delivery_token(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.delivery_token_mac.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }

    /// A hash by which two hubs compare their keys without sending them.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut key = [0; 32];
        for (index, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).ok()?;
        }
        Some(Self::from_key(&key))
    }

    /// The sealed form of a secret, as the store keeps it.
    pub fn seal_secret(&self, secret: &Secret) -> Result<Vec<u8>> {
        self.seal(secret.expose())
            .ok_or_else(|| Error::internal("a secret could not be sealed"))
    }

    fn seal(&self, text: &str) -> Option<Vec<u8>> {
        let nonce: [u8; NONCE_BYTES] = crate::random::random_value();
        let sealed = self
            .cipher
            .encrypt(
                &XNonce::from(nonce),
                Payload {
                    msg: text.as_bytes(),
                    aad: ASSOCIATED_DATA,
                },
            )
            .ok()?;
        Some([&nonce[..], &sealed].concat())
    }

    /// The secret; `None` when it was sealed with another key.
    pub fn unseal(&self, sealed: &[u8]) -> Option<Secret> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let text = self
            .cipher
            .decrypt(
                &XNonce::from(*nonce),
                Payload {
                    msg: sealed,
                    aad: ASSOCIATED_DATA,
                },
            )
            .ok()?;
        String::from_utf8(text).ok().map(Secret::new)
    }
}

/// HKDF-SHA-256 (RFC 5869) without a salt, for one block of output. The derived key says nothing about the sealing key.
fn derive_key(key: &[u8], info: &[u8]) -> [u8; 32] {
    let extracted = compute_hmac(&[0; 32], &[key]);
    compute_hmac(&extracted, &[info, &[1]])
}

/// HMAC pads a key to the block of its hash with zeros.
fn start_hmac(key: &[u8; 32]) -> Hmac<Sha256> {
    let mut block = [0; 64];
    block[..32].copy_from_slice(key);
    Hmac::new(&block.into())
}

fn compute_hmac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = start_hmac(key);
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// Written atomically, readable by its owner only, and never over an existing file.
fn write_key_file(path: &Path, key: &[u8; 32]) -> std::io::Result<()> {
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let temporary_path = path.with_extension("new");
    let mut file = std::fs::File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&temporary_path)?;
    file.write_all(hex.as_bytes())?;
    file.sync_all()?;
    let linked = std::fs::hard_link(&temporary_path, path);
    std::fs::remove_file(&temporary_path)?;
    linked?;
    // The directory entry must be as durable as the file.
    path.parent()
        .map_or(Ok(()), |dir| std::fs::File::open(dir)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    ///
    #[test]
    fn what_is_sealed_opens_with_its_own_key_and_no_other() {
        let (seal, other) = (SealKey::from_key(&[7; 32]), SealKey::from_key(&[8; 32]));
        let sealed = seal.seal("https://a.example/inbox/sk_1").unwrap();
        assert_eq!(
            seal.unseal(&sealed).unwrap().expose(),
            "https://a.example/inbox/sk_1"
        );
        assert!(
            !sealed.windows(3).any(|part| part == b"sk_"),
            "it is there to be read"
        );
        assert_ne!(
            sealed,
            seal.seal("https://a.example/inbox/sk_1").unwrap(),
            "two alike do not look alike"
        );
        let mut changed = sealed.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert!(
            other.unseal(&sealed).is_none()
                && seal.unseal(&changed).is_none()
                && seal.unseal(&sealed[..20]).is_none()
        );
    }

    /// RFC 5869, test case 3 (no salt, no info), its first block.
    #[test]
    fn a_key_is_derived_as_hkdf_says() {
        let expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d";
        let derived: String = derive_key(&[0x0b; 22], b"")
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(derived, expected);
    }

    ///
    #[test]
    fn the_key_is_made_once_for_the_hub_alone_and_one_that_was_named_is_never_made_up() {
        let dir = tempfile::tempdir().unwrap();
        let sealed = SealKey::load_or_create(dir.path(), None, SealedData::Nothing)
            .unwrap()
            .seal("x")
            .unwrap();
        assert_eq!(
            SealKey::load_or_create(dir.path(), None, SealedData::Nothing)
                .unwrap()
                .unseal(&sealed)
                .unwrap()
                .expose(),
            "x"
        );
        let path = dir.path().join(SEAL_KEY_FILE);
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(
            SealKey::load_or_create(
                dir.path(),
                Some(&dir.path().join("elsewhere")),
                SealedData::Nothing
            )
            .is_err()
        );
        assert!(
            SealKey::load_or_create(Path::new("/nowhere"), Some(&path), SealedData::Nothing)
                .unwrap()
                .unseal(&sealed)
                .is_some()
        );
        std::fs::write(&path, "not a key").unwrap();
        let said = SealKey::load_or_create(dir.path(), None, SealedData::Nothing)
            .err()
            .unwrap()
            .to_string();
        assert!(
            said.contains("seal.key") && !said.contains("not a key"),
            "{said}"
        );
    }
}
