//! Where a hub keeps what: its discovery document when it has one, the documents' own paths otherwise (TRN-51).

use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// Paths below the hub's URL. They are only ever appended to it, so that no document can send a key to another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubPaths {
    pub register: String,
    pub agents: String,
    pub directory: String,
    pub messages: String,
    pub inbox: String,
    pub history: String,
    pub session: String,
    pub invite: String,
    pub invites: String,
    pub activity: String,
    pub events: String,
    pub health: String,
    pub frames: String,
    pub handles: String,
    pub orgs: String,
    pub mcp: String,
    /// What the hub calls itself to the outside.
    pub public_url: Option<String>,
    /// What short names stand for (R-02).
    pub host_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WellKnownDocument {
    endpoints: HashMap<String, Value>,
    public_url: Option<String>,
    host_name: Option<String>,
}

impl HubPaths {
    /// From `/.well-known/chorus.json`; what it does not say is as the documents print it.
    pub fn parse_document(document: &[u8]) -> Self {
        let document = serde_json::from_slice::<WellKnownDocument>(document).unwrap_or_default();
        let path = |key: &str, default_path: &str| {
            let declared = document.endpoints.get(key).and_then(Value::as_str);
            // `/invite/{id}`: what comes before the parameter is ours to append to.
            let declared = declared.map(|path| path.strip_suffix("/{id}").unwrap_or(path));
            declared
                .filter(|path| is_usable(path))
                .unwrap_or(default_path)
                .to_owned()
        };
        Self {
            // 001's `register` is the operator's route, so self-registration has a name of its own.
            register: path("self_register", "/register"),
            agents: path("register", "/agents"),
            // 001's `discover` lists records; the directory with cultures is 002's.
            directory: path("directory", "/discover"),
            messages: path("send", "/messages"),
            inbox: path("inbox", "/agent/inbox"),
            history: path("history", "/agent/messages"),
            session: path("session", "/agent/session"),
            invite: path("invite", "/invite"),
            invites: path("invites", "/invites"),
            activity: path("activity", "/activity"),
            events: path("events", "/events"),
            health: path("health", "/health"),
            frames: path("frames", "/frames"),
            handles: path("handles", "/handles"),
            orgs: path("orgs", "/orgs"),
            // 001's `mcp` is a document about tools; the tools themselves are here.
            mcp: path("tools", "/mcp"),
            public_url: document.public_url,
            host_name: document.host_name,
        }
    }
}

impl Default for HubPaths {
    fn default() -> Self {
        Self::parse_document(b"{}")
    }
}

/// A plain absolute path: no query, no template, nothing that climbs.
fn is_usable(path: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'-' | b'_' | b'.' | b'~');
    path.starts_with('/')
        && path.len() <= 256
        && path.bytes().all(plain)
        && !path.contains("//")
        && !path.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    // TRN-51
    #[test]
    fn a_hub_that_moves_its_routes_is_followed() {
        let document = br#"{"chorus_version":"0.4","endpoints":{"register":"/v2/agents","send":"/v2/messages"}}"#;
        let paths = HubPaths::parse_document(document);
        assert_eq!(paths.agents, "/v2/agents");
        assert_eq!(paths.messages, "/v2/messages");
        assert_eq!(
            paths.register, "/register",
            "001's register is the operator's route"
        );
        assert_eq!(paths.health, "/health");
    }

    #[test]
    fn a_document_cannot_lead_a_key_elsewhere() {
        for bad in [
            "https://elsewhere.example/m",
            "//elsewhere.example/m",
            "@elsewhere.example",
            "/a?b",
            "/../x",
            "",
        ] {
            let document = format!(r#"{{"endpoints":{{"send":"{bad}"}}}}"#);
            assert_eq!(
                HubPaths::parse_document(document.as_bytes()).messages,
                "/messages",
                "{bad}"
            );
        }
        assert_eq!(HubPaths::parse_document(b"<html>"), HubPaths::default());
        assert_eq!(
            HubPaths::parse_document(br#"{"endpoints":[]}"#),
            HubPaths::default()
        );
    }
}
