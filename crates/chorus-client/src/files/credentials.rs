//! The credential file: `{"agent_id","api_key","hub_url"}`, one per agent, never overwritten unasked (SKL-21…23).

use super::{Place, atomic::Draft, read_small};
use crate::{Error, Result};
use chorus_wire::secret::Secret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Credentials {
    pub agent_id: String,
    pub api_key: Secret,
    pub hub_url: String,
    /// What other tools keep in the same file stays in it.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// Where new credentials will be saved; made before registering (SKL-22).
pub struct Slot {
    draft: Draft,
    /// Something is there that may be replaced: a file without a key, or an identity its user gave up.
    replace: bool,
    rest: Map<String, Value>,
}

impl Credentials {
    /// None when there is no file, or one without an agent or a key in it (SKL-19).
    pub fn read(place: &Place) -> Result<Option<Self>> {
        let Some(fields) = fields(place)? else {
            return Ok(None);
        };
        let filled = |key: &str| {
            fields
                .get(key)
                .and_then(Value::as_str)
                .is_some_and(|text| !text.is_empty())
        };
        if !filled("agent_id") || !filled("api_key") {
            return Ok(None);
        }
        let wrong = |e| Error::file(&place.credentials, format!("is not a credential file: {e}"));
        serde_json::from_value(Value::Object(fields))
            .map(Some)
            .map_err(wrong)
    }

    /// `renew` is the user's word that a saved identity may go.
    pub fn slot(place: &Place, renew: bool) -> Result<Slot> {
        let exists = fields(place)?;
        if !renew && Self::read(place)?.is_some() {
            return Err(Error::Input(format!(
                "{} already holds an identity",
                place.credentials.display()
            )));
        }
        let mut rest = exists.clone().unwrap_or_default();
        for key in ["agent_id", "api_key", "hub_url"] {
            rest.remove(key);
        }
        Ok(Slot {
            draft: Draft::for_target(&place.credentials)?,
            replace: exists.is_some(),
            rest,
        })
    }
}

impl Slot {
    pub fn save(self, mut credentials: Credentials) -> Result<()> {
        credentials.rest = self.rest;
        let mut text =
            serde_json::to_string_pretty(&credentials).map_err(|e| Error::Input(e.to_string()))?;
        text.push('\n');
        if self.replace {
            return self.draft.replace(text.as_bytes());
        }
        if self.draft.create(text.as_bytes())? {
            return Ok(());
        }
        Err(Error::Input(
            "another process saved an identity at the same moment; nothing was overwritten".into(),
        ))
    }
}

/// The file as an object; a file that is something else is an error rather than free space.
fn fields(place: &Place) -> Result<Option<Map<String, Value>>> {
    let Some(text) = read_small(&place.credentials)? else {
        return Ok(None);
    };
    if text.trim().is_empty() {
        return Ok(Some(Map::new()));
    }
    let wrong = |e| Error::file(&place.credentials, format!("is not a credential file: {e}"));
    serde_json::from_str(&text).map(Some).map_err(wrong)
}
