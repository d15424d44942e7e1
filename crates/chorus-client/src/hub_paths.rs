//! The paths of a hub's routes: from its discovery document, or the specified defaults without one (TRN-51).

use crate::route_templates::{self, AnnouncedRoutes};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// Paths below the hub's URL. They are only appended to it, so that no document can send a key to another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubPaths {
    pub register: String,
    pub agents: String,
    pub directory: String,
    pub messages: String,
    pub inbox: String,
    pub history: String,
    pub session: String,
    pub keys: String,
    pub endpoint_secret: String,
    pub usage: String,
    pub invite: String,
    pub invites: String,
    pub activity: String,
    pub events: String,
    pub health: String,
    pub frames: String,
    pub mcp: String,
    /// Templates of routes below `agents`, `messages`, `history`, `keys` and `invites`, for hubs that announce them elsewhere.
    pub agent: String,
    pub unregister: String,
    pub message: String,
    pub respond: String,
    pub shown: String,
    pub revoke_key: String,
    pub rotate_key: String,
    pub revoke_invite: String,
    /// Announced paths of all other routes.
    pub announced: AnnouncedRoutes,
    /// The hub's own public URL.
    pub public_url: Option<String>,
    /// The host that completes short names (R-02).
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
    /// Reads `/.well-known/chorus.json`; a missing path gets its specified default.
    pub fn parse_document(document: &[u8]) -> Self {
        let document = serde_json::from_slice::<WellKnownDocument>(document).unwrap_or_default();
        let path = |key: &str, default_path: &str| {
            let declared = document.endpoints.get(key).and_then(Value::as_str);
            // `/invite/{id}`: the client appends the parameter itself.
            let declared = declared.map(|path| path.strip_suffix("/{id}").unwrap_or(path));
            declared
                .filter(|path| is_usable(path))
                .unwrap_or(default_path)
                .to_owned()
        };
        let path_below = |key: &str, parent: &str, rest: &str| {
            let derived = format!("{parent}{rest}");
            route_templates::find_announced(&document.endpoints, key, &derived)
                .unwrap_or(&derived)
                .to_owned()
        };
        let agents = path("register", "/agents");
        let messages = path("send", "/messages");
        let history = path("history", "/agent/messages");
        let keys = path("keys", "/agent/keys");
        let invites = path("invites", "/invites");
        Self {
            agent: path_below("agent", &agents, "/{id}"),
            unregister: path_below("unregister", &agents, "/{id}"),
            message: path_below("message", &messages, "/{trace_id}"),
            respond: path_below("respond", &history, "/{trace_id}/response"),
            shown: path_below("shown", &history, "/{trace_id}/shown"),
            revoke_key: path_below("revoke_key", &keys, "/{id}"),
            rotate_key: path_below("rotate_key", &keys, "/rotate"),
            revoke_invite: path_below("revoke_invite", &invites, "/{id}"),
            // Document 001's `register` is the operator's route, so self-registration has another name.
            register: path("self_register", "/register"),
            agents,
            // Document 001's `discover` lists records; the directory with cultures is in document 002.
            directory: path("directory", "/discover"),
            messages,
            inbox: path("inbox", "/agent/inbox"),
            history,
            session: path("session", "/agent/session"),
            keys,
            endpoint_secret: path("endpoint_secret", "/agent/endpoint-secret"),
            usage: path("usage", "/agent/usage"),
            invite: path("invite", "/invite"),
            invites,
            activity: path("activity", "/activity"),
            events: path("events", "/events"),
            health: path("health", "/health"),
            frames: path("frames", "/frames"),
            // Document 001's `mcp` describes the tools; `tools` is the endpoint that runs them.
            mcp: path("tools", "/mcp"),
            announced: AnnouncedRoutes::parse_endpoints(&document.endpoints),
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

/// Whether `path` is a plain absolute path: no query, no template, no `..`.
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
    fn paths_of_the_discovery_document_replace_the_defaults() {
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

    // TRN-51
    #[test]
    fn a_route_that_is_not_announced_is_below_its_parent() {
        let document = br#"{"endpoints":{"register":"/v2/agents","send":"/v2/messages",
            "message":"/states/{trace_id}","shown":"/seen","respond":"https://elsewhere.example/{trace_id}"}}"#;
        let paths = HubPaths::parse_document(document);
        assert_eq!(paths.agent, "/v2/agents/{id}");
        assert_eq!(paths.unregister, "/v2/agents/{id}");
        assert_eq!(paths.message, "/states/{trace_id}");
        assert_eq!(paths.shown, "/agent/messages/{trace_id}/shown");
        assert_eq!(paths.respond, "/agent/messages/{trace_id}/response");
        assert_eq!(paths.rotate_key, "/agent/keys/rotate");
    }

    #[test]
    fn a_document_cannot_send_a_key_to_another_host() {
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
