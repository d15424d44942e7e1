//! The files of the console, compressed by `build.rs`.

use bytes::Bytes;
use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::LazyLock;

pub struct EmbeddedFile {
    pub compressed: Bytes,
    /// The start of the file's hash, as hexadecimal digits.
    pub digits: String,
}

impl EmbeddedFile {
    fn new(compressed: &'static [u8]) -> Self {
        let hash = Sha256::digest(compressed);
        Self {
            compressed: Bytes::from_static(compressed),
            digits: hash
                .iter()
                .take(16)
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        }
    }

    /// The file itself, for the few clients that take no gzip.
    pub fn decompress(&self) -> Vec<u8> {
        let mut plain = Vec::new();
        // `build.rs` wrote the bytes, so reading them cannot fail.
        let _ = GzDecoder::new(&*self.compressed).read_to_end(&mut plain);
        plain
    }
}

static EMBEDDED_FILES: LazyLock<BTreeMap<&str, EmbeddedFile>> = LazyLock::new(|| {
    let files: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));
    files
        .iter()
        .map(|(name, compressed)| (*name, EmbeddedFile::new(compressed)))
        .collect()
});

pub fn find_file(name: &str) -> Option<&'static EmbeddedFile> {
    EMBEDDED_FILES.get(name)
}

#[cfg(test)]
pub fn list_files() -> impl Iterator<Item = (&'static str, &'static EmbeddedFile)> {
    EMBEDDED_FILES.iter().map(|(name, file)| (*name, file))
}
