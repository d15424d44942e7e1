//! The operator key that a hub makes at its first start, so that it has an operator without being configured.

use crate::fail::Fail;
use chorus_client::files::atomic_file::AtomicFile;
use chorus_wire::secret::Secret;
use std::path::{Path, PathBuf};

/// The file in the data directory.
const OPERATOR_FILE: &str = "operator.key";
/// Octets of randomness in the key, as in the keys of agents.
const KEY_OCTETS: usize = 32;

/// The operator key of a data directory.
pub struct OperatorFile {
    pub path: PathBuf,
    pub key: Secret,
    /// It was made by this start.
    pub is_new: bool,
}

impl OperatorFile {
    /// Reads the key, or makes one. It is readable by its owner only.
    pub fn open(data_dir: &Path) -> Result<Self, Fail> {
        let path = data_dir.join(OPERATOR_FILE);
        if let Some(key) = read_key(&path)? {
            return Ok(Self {
                path,
                key,
                is_new: false,
            });
        }
        let octets: [u8; KEY_OCTETS] = rand::random();
        let text: String = octets.iter().map(|octet| format!("{octet:02x}")).collect();
        let text = format!("op_{text}");
        let is_new =
            AtomicFile::for_target(&path)?.commit_if_absent(format!("{text}\n").as_bytes())?;
        // Another process was first: its key is the one that counts.
        let key = match is_new {
            true => Secret::new(text),
            false => read_key(&path)?.ok_or_else(|| {
                Fail::usage_error(format!("{} is empty; remove it", path.display()))
            })?,
        };
        Ok(Self { path, key, is_new })
    }
}

fn read_key(path: &Path) -> Result<Option<Secret>, Fail> {
    match std::fs::read_to_string(path) {
        Ok(text) if text.trim().is_empty() => Ok(None),
        Ok(text) => Ok(Some(Secret::new(text.trim()))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Fail::usage_error(format!("{}: {e}", path.display()))),
    }
}
