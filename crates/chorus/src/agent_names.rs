//! Names on the command line: any spelling of an agent's name, and the nearest names for one that means nothing.

use crate::fail::{ExitKind, Fail};
use chorus_client::{Error, HubClient};
use chorus_wire::identity::Handle;

/// How many names an error suggests: more would hide the right one.
const SUGGESTED_NAMES: usize = 3;
/// The least similarity (Jaro-Winkler) of a suggested name, the one at which clap suggests commands too.
const LEAST_SIMILARITY: f64 = 0.7;

/// The address of a registered agent, of which any name is given.
pub async fn resolve_agent(client: &HubClient, name: &str) -> Result<String, Fail> {
    check_expanded(name)?;
    match client.fetch_record(name).await {
        Ok(record) => Ok(record.agent_id),
        // Not even the form of a name.
        Err(Error::Refused(refusal)) if refusal.code == "ERR_VALIDATION" => {
            Err(unknown_name(client, name, refusal.code).await)
        }
        Err(error) => Err(explain_unknown(client, name, error).await),
    }
}

/// The address of an agent, or the name as it is given if the hub has no record of it: other hubs look names up in their own
/// way, and the call that follows says whether it means something.
pub async fn resolve_or_keep(client: &HubClient, name: &str) -> Result<String, Fail> {
    check_expanded(name)?;
    if name.contains('@') {
        return Ok(name.to_owned());
    }
    Ok(client
        .fetch_record(name)
        .await
        .map_or_else(|_| name.to_owned(), |record| record.agent_id))
}

pub fn is_not_found(error: &Error) -> bool {
    error
        .error_response()
        .is_some_and(|refusal| refusal.status == 404)
}

/// bash replaces `~root` by the home of a user of this machine before the command starts.
pub fn check_expanded(name: &str) -> Result<(), Fail> {
    match name.starts_with('/') {
        true => Err(Fail::usage_error(format!(
            "{name} is a folder: your shell has replaced a name that begins with ~; write it without the ~"
        ))),
        false => Ok(()),
    }
}

/// The error of a call that names an agent. If the name means nothing, it has the nearest names and the next step.
pub async fn explain_unknown(client: &HubClient, name: &str, error: Error) -> Fail {
    match error.error_response().filter(|r| r.status == 404) {
        Some(refusal) => unknown_name(client, name, refusal.code.clone()).await,
        None => Fail::from(error),
    }
}

async fn unknown_name(client: &HubClient, name: &str, code: String) -> Fail {
    let nearest = match client.list_directory().await {
        Ok(rows) => nearest_names(name, rows.into_iter().map(|row| row.agent_id)),
        Err(_) => Vec::new(),
    };
    let suggestion = match nearest.as_slice() {
        [] => String::new(),
        names => format!(" did you mean {}?", names.join(" or ")),
    };
    let hub = client.base_url();
    Fail::new(
        ExitKind::Refused,
        code,
        format!("no agent is called {name} at {hub};{suggestion} chorus discover lists all"),
    )
}

fn nearest_names(wanted: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    let wanted = local_part(wanted).to_lowercase();
    let mut similar: Vec<(f64, String)> = known
        .map(|name| {
            let local = local_part(&name).to_lowercase();
            (strsim::jaro_winkler(&wanted, &local), name)
        })
        .filter(|(similarity, _)| *similarity >= LEAST_SIMILARITY)
        .collect();
    similar.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    similar.truncate(SUGGESTED_NAMES);
    similar.into_iter().map(|(_, name)| name).collect()
}

/// `bob` of `bob`, `~bob` and `bob@chorus`.
pub fn local_part(name: &str) -> &str {
    let name = name.strip_prefix('~').unwrap_or(name);
    name.split_once('@').map_or(name, |(local, _)| local)
}

/// Whether an address has this name: the whole of it, or its local part with or without `~`.
pub fn has_name(address: &str, name: &str) -> bool {
    address == name || !name.contains('@') && local_part(address) == local_part(name)
}

/// A handle as people write it: `~bob`, `bob`, which zsh and fish leave alone, or `bob@chorus`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandleName {
    handle: Handle,
    host: Option<String>,
}

impl HandleName {
    pub fn parse(text: &str) -> Result<Self, String> {
        check_expanded(text).map_err(|fail| fail.to_string())?;
        let (local, host) = match text.split_once('@') {
            Some((local, host)) => (local, Some(host.to_owned())),
            None => (text, None),
        };
        let handle = Handle::parse(&format!("~{}", local_part(local)));
        let handle = handle.ok_or("a name here looks like alice, ~alice or alice@chorus")?;
        Ok(Self { handle, host })
    }

    /// The handle, if it is one of this hub: only names under its own host have one.
    pub async fn resolve(&self, client: &HubClient) -> Result<Handle, Fail> {
        let Some(host) = &self.host else {
            return Ok(self.handle.clone());
        };
        let own_host = client.fetch_paths().await?.host_name.clone();
        match own_host.as_deref().is_none_or(|own| own == host) {
            true => Ok(self.handle.clone()),
            false => Err(Fail::usage_error(format!(
                "an agent under {host} has no handle at {}; only names under {} have one",
                client.base_url(),
                own_host.unwrap_or_default()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //
    #[test]
    fn the_nearest_names_come_first_and_strangers_do_not_come() {
        let known = ["zed@chorus", "bob@chorus", "bobby@chorus", "maria@chorus"];
        let nearest = |wanted: &str| nearest_names(wanted, known.iter().map(|n| n.to_string()));
        assert_eq!(nearest("bobb"), ["bobby@chorus", "bob@chorus"]);
        assert_eq!(nearest("~zedd"), ["zed@chorus"]);
        assert!(nearest("qqqq").is_empty());
    }

    //
    #[test]
    fn a_handle_is_taken_in_every_spelling() {
        let parse = |text: &str| HandleName::parse(text).map(|name| name.handle.to_string());
        for text in ["ben", "~ben", "ben@chorus", "~ben@chorus"] {
            assert_eq!(parse(text).unwrap(), "~ben", "{text}");
        }
        for bad in ["", "~", "Ben Smith", "@chorus"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert!(parse("/root").unwrap_err().contains("without the ~"));
    }
}
