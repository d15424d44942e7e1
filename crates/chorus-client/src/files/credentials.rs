//! The credential file `{"agent_id","api_key","hub_url"}`: one per agent, replaced only on request (SKL-21…23).

use super::{IdentityFiles, atomic_file::AtomicFile, read_small_file};
use crate::{Error, Result, http};
use chorus_wire::identity::AgentAddress;
use chorus_wire::secret::Secret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Most backups of one credential file: a program that renews its identity in a loop must not fill the folder.
const MAX_BACKUPS: u32 = 100;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AgentCredentials {
    pub agent_id: String,
    pub api_key: Secret,
    pub hub_url: String,
    /// Fields of other tools, which are kept.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// The reserved file for new credentials; created before registering (SKL-22).
pub struct CredentialSlot {
    file: AtomicFile,
    /// A file exists that may be replaced: one without a key, or an identity that the user wants to renew.
    replace: bool,
    rest: Map<String, Value>,
}

impl AgentCredentials {
    /// The saved credentials; `None` without a file, or when it has no agent or no key (SKL-19).
    pub fn read_from(files: &IdentityFiles) -> Result<Option<Self>> {
        let Some(fields) = read_fields(files)? else {
            return Ok(None);
        };
        let is_filled = |key: &str| {
            fields
                .get(key)
                .and_then(Value::as_str)
                .is_some_and(|text| !text.is_empty())
        };
        if !is_filled("agent_id") || !is_filled("api_key") {
            return Ok(None);
        }
        let parse_error =
            |e| Error::file_error(&files.credentials, format!("is not a credential file: {e}"));
        let credentials: Self =
            serde_json::from_value(Value::Object(fields)).map_err(parse_error)?;
        credentials
            .check_names()
            .map_err(|fault| Error::file_error(&files.credentials, fault))?;
        Ok(Some(credentials))
    }

    /// The agent's name stands in lines that a model trusts, and the URL gets the key. The fault does not repeat them.
    fn check_names(&self) -> std::result::Result<(), String> {
        AgentAddress::parse("agent_id", &self.agent_id).map_err(|e| e.message)?;
        let is_plain = self.hub_url.chars().all(|c| c.is_ascii_graphic());
        if !is_plain || http::parse_base_url(&self.hub_url).is_err() {
            return Err(
                "hub_url must be an http:// or https:// URL without user, query and fragment"
                    .into(),
            );
        }
        Ok(())
    }

    /// Copies the saved identity beside its file, because a key that is overwritten cannot be recovered: `config.old.json`, then
    /// `config.old-2.json`. `None` when there is nothing to lose.
    pub fn keep_backup(files: &IdentityFiles) -> Result<Option<PathBuf>> {
        let Some(text) = read_small_file(&files.credentials)? else {
            return Ok(None);
        };
        if Self::read_from(files)?.is_none() {
            return Ok(None);
        }
        for number in 1..=MAX_BACKUPS {
            let path = match number {
                1 => files.credentials.with_extension("old.json"),
                number => files
                    .credentials
                    .with_extension(format!("old-{number}.json")),
            };
            let is_kept = AtomicFile::for_target(&path)?.commit_if_absent(text.as_bytes())?
                || read_small_file(&path)?.as_ref() == Some(&text);
            if is_kept {
                return Ok(Some(path));
            }
        }
        Err(Error::file_error(
            &files.credentials,
            format!("has {MAX_BACKUPS} backups beside it; remove those that you do not need"),
        ))
    }

    /// Reserves the credential file. With `renew` the user allows replacing a saved identity.
    pub fn reserve_slot(files: &IdentityFiles, renew: bool) -> Result<CredentialSlot> {
        let existing = read_fields(files)?;
        if !renew && Self::read_from(files)?.is_some() {
            return Err(Error::Input(format!(
                "{} already holds an identity",
                files.credentials.display()
            )));
        }
        let mut rest = existing.clone().unwrap_or_default();
        for key in ["agent_id", "api_key", "hub_url"] {
            rest.remove(key);
        }
        Ok(CredentialSlot {
            file: AtomicFile::for_target(&files.credentials)?,
            replace: existing.is_some(),
            rest,
        })
    }
}

impl CredentialSlot {
    pub fn save(self, mut credentials: AgentCredentials) -> Result<()> {
        credentials.rest = self.rest;
        let mut text =
            serde_json::to_string_pretty(&credentials).map_err(|e| Error::Input(e.to_string()))?;
        text.push('\n');
        if self.replace {
            return self.file.commit_replacing(text.as_bytes());
        }
        if self.file.commit_if_absent(text.as_bytes())? {
            return Ok(());
        }
        Err(Error::Input(
            "another process saved an identity at the same moment; nothing was overwritten".into(),
        ))
    }
}

/// The file as a JSON object. A file with other content is an error, so that it is not overwritten.
fn read_fields(files: &IdentityFiles) -> Result<Option<Map<String, Value>>> {
    let Some(text) = read_small_file(&files.credentials)? else {
        return Ok(None);
    };
    if text.trim().is_empty() {
        return Ok(Some(Map::new()));
    }
    let parse_error =
        |e| Error::file_error(&files.credentials, format!("is not a credential file: {e}"));
    serde_json::from_str(&text).map(Some).map_err(parse_error)
}
