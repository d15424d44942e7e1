//! Where a project gets the SDK from: its registry, or a checkout of Chorus.

use super::template::ProjectLanguage;
use crate::fail::Fail;
use std::path::{Path, PathBuf};
use url::Url;

#[derive(Debug)]
pub enum SdkSource {
    /// The package that has the version of this program.
    Registry,
    /// The folder of the package in a checkout: absolute, so that the project may move.
    Folder(PathBuf),
}

impl SdkSource {
    /// `path` is a checkout, or the folder of the package in it.
    pub fn find(language: ProjectLanguage, path: Option<&Path>) -> Result<Self, Fail> {
        let Some(path) = path else {
            return Ok(Self::Registry);
        };
        let fail = |what: &str| Fail::usage_error(format!("{}: {what}", path.display()));
        let whole = std::fs::canonicalize(path).map_err(|error| fail(&error.to_string()))?;
        let folders = [whole.join("sdk").join(language.as_str()), whole];
        let found = folders
            .into_iter()
            .find(|folder| is_sdk(&folder.join(language.manifest_file())))
            .ok_or_else(|| fail("is no checkout of Chorus, and no folder of this SDK"))?;
        // Both manifests are UTF-8.
        match found.to_str() {
            Some(_) => Ok(Self::Folder(found)),
            None => Err(fail("the path is not UTF-8")),
        }
    }

    /// A requirement of a Python project (PEP 508).
    pub fn python_requirement(&self) -> String {
        match self {
            Self::Registry => format!("chorus-sdk~={}.0", minor_version()),
            Self::Folder(folder) => match Url::from_file_path(folder) {
                Ok(url) => format!("chorus-sdk @ {url}"),
                Err(()) => format!("chorus-sdk @ file://{}", folder.display()),
            },
        }
    }

    /// The version of a dependency of a package of npm.
    pub fn npm_version(&self) -> String {
        match self {
            Self::Registry => format!("~{}.0", minor_version()),
            Self::Folder(folder) => format!("file:{}", folder.display()),
        }
    }
}

/// Manifests are small; an error means that there is none.
fn is_sdk(manifest: &Path) -> bool {
    let text = std::fs::read_to_string(manifest).unwrap_or_default();
    let is_name = |line: &str| line.contains("name") && line.contains("\"chorus-sdk\"");
    text.lines().any(is_name)
}

/// `0.1` of `0.1.0`: the SDKs have the minor version of the hub (SDK-21).
fn minor_version() -> &'static str {
    let version = env!("CARGO_PKG_VERSION");
    version.rsplit_once('.').map_or(version, |(minor, _)| minor)
}
