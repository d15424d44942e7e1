//! The demo's data directory: private to the user, and removed when it is dropped.

use crate::fail::Fail;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    pub fn create() -> Result<Self, Fail> {
        let path = std::env::temp_dir().join(format!(
            "chorus-demo-{}",
            chorus_client::market::random_id()
        ));
        let created = std::fs::DirBuilder::new().mode(0o700).create(&path);
        created.map_err(|e| Fail::usage_error(format!("{}: {e}", path.display())))?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!("{} could not be removed: {error}", self.0.display());
        }
    }
}
