//! Who is speaking, and to which hub: found the same way by every command.

use crate::{cli::Common, fail::Fail};
use chorus_client::Client;
use chorus_client::files::{Credentials, Place, State};
use chorus_wire::secret::Secret;
use std::path::{Path, PathBuf};

pub struct Session {
    pub place: Place,
    pub who: Credentials,
    pub client: Client,
}

impl Session {
    /// The saved identity, or exit code 2.
    pub fn open(common: &Common) -> Result<Self, Fail> {
        let place = place(common)?;
        let who = Credentials::read(&place)?.ok_or_else(Fail::not_registered)?;
        let hub = common.hub.as_deref().unwrap_or(&who.hub_url);
        let client = Client::new(hub, Some(who.api_key.clone()))?;
        Ok(Self { place, who, client })
    }

    pub fn state(&self) -> Result<State, Fail> {
        Ok(State::read(&self.place, &self.who)?)
    }
}

/// Where this agent's files are. Paths stay as they were given: the working directory never changes, and a person knows
/// `alice/config.json` better than what it is short for.
pub fn place(common: &Common) -> Result<Place, Fail> {
    Ok(Place::find(
        common.credentials.as_deref(),
        Path::new(""),
        &home()?,
    ))
}

/// `$CHORUS_HOME` or `~/.chorus`.
pub fn home() -> Result<PathBuf, Fail> {
    if let Some(home) = std::env::var_os("CHORUS_HOME").filter(|home| !home.is_empty()) {
        return Ok(PathBuf::from(home));
    }
    let home = etcetera::home_dir().map_err(|e| Fail::usage(format!("no home directory: {e}")))?;
    Ok(home.join(".chorus"))
}

/// A hub to talk to without an identity: the one named, else the one of the credentials. There is no built-in hub.
pub fn hub(common: &Common, key: Option<Secret>) -> Result<Client, Fail> {
    let saved = match &common.hub {
        Some(_) => None,
        None => Credentials::read(&place(common)?)?.map(|who| who.hub_url),
    };
    let url = common.hub.clone().or(saved);
    let url = url.ok_or_else(|| Fail::usage("which hub? pass --hub URL or set CHORUS_HUB"))?;
    Ok(Client::new(&url, key)?)
}
