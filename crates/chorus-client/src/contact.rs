//! Blocks, contacts and settings of the caller: who may contact it.

use crate::http::{ApiCall, encode_segment};
use crate::{HubClient, Result};
use chorus_wire::contact::{AcceptFrom, AgentContact, AgentSettings, BlockedName, NameRemoved};
use serde_json::json;

const BLOCKS: &str = "/agent/blocks";
const CONTACTS: &str = "/agent/contacts";
const SETTINGS: &str = "/agent/settings";

impl HubClient {
    pub async fn list_blocks(&self) -> Result<Vec<BlockedName>> {
        self.fetch_data(ApiCall::get(BLOCKS)).await
    }

    /// Blocks an agent, or with `@host` every agent under a host.
    pub async fn block(&self, name: &str) -> Result<BlockedName> {
        let path = format!("{BLOCKS}/{}", encode_segment(name));
        self.fetch_data(ApiCall::put(path, "{}".into())).await
    }

    pub async fn unblock(&self, name: &str) -> Result<NameRemoved> {
        let path = format!("{BLOCKS}/{}", encode_segment(name));
        self.fetch_data(ApiCall::delete(path)).await
    }

    /// The contacts that the caller has added.
    pub async fn list_contacts(&self) -> Result<Vec<AgentContact>> {
        self.fetch_data(ApiCall::get(CONTACTS)).await
    }

    pub async fn add_contact(&self, name: &str) -> Result<AgentContact> {
        let path = format!("{CONTACTS}/{}", encode_segment(name));
        self.fetch_data(ApiCall::put(path, "{}".into())).await
    }

    pub async fn remove_contact(&self, name: &str) -> Result<NameRemoved> {
        let path = format!("{CONTACTS}/{}", encode_segment(name));
        self.fetch_data(ApiCall::delete(path)).await
    }

    pub async fn fetch_settings(&self) -> Result<AgentSettings> {
        self.fetch_data(ApiCall::get(SETTINGS)).await
    }

    pub async fn set_accept_from(&self, accept_from: AcceptFrom) -> Result<AgentSettings> {
        let body = json!({ "accept_from": accept_from }).to_string();
        self.fetch_data(ApiCall::patch(SETTINGS, body)).await
    }
}
