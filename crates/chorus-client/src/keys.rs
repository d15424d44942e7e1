//! The further keys of an agent, and the rotation of its registration's key.

use crate::http::{ApiCall, encode_segment};
use crate::route_templates::fill_parameter;
use crate::{Error, HubClient, Result};
use chorus_wire::agent_key::{
    AgentKeyRecord, AgentKeyRevoked, KeyRotation, NewAgentKey, RotatedKey,
};

impl HubClient {
    /// Creates a further key. It is shown only in this answer.
    pub async fn create_key(&self, new: &NewAgentKey) -> Result<AgentKeyRecord> {
        let path = self.fetch_paths().await?.keys.clone();
        let body = to_json(new)?;
        let made: AgentKeyRecord = self
            .fetch_data_with_retry(ApiCall::post(path, body))
            .await?;
        if made.key.is_none() {
            return Err(Error::Answer("a new key came without its text".into()));
        }
        Ok(made)
    }

    pub async fn list_keys(&self) -> Result<Vec<AgentKeyRecord>> {
        let path = self.fetch_paths().await?.keys.clone();
        self.fetch_data(ApiCall::get(path)).await
    }

    pub async fn revoke_key(&self, id: &str) -> Result<AgentKeyRevoked> {
        let path = fill_parameter(&self.fetch_paths().await?.revoke_key, &encode_segment(id));
        self.fetch_data(ApiCall::delete(path)).await
    }

    /// Replaces the registration's key. If the answer is lost, the same call with the old key and the same `request` makes
    /// another new key, until the new one is used.
    pub async fn rotate_key(&self, rotation: &KeyRotation, request: &str) -> Result<RotatedKey> {
        let path = self.fetch_paths().await?.rotate_key.clone();
        let mut call = ApiCall::post(path, to_json(rotation)?);
        call.idempotency_key = Some(request.to_owned());
        self.fetch_data_with_retry(call).await
    }
}

fn to_json(body: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(body).map_err(|e| Error::Input(e.to_string()))
}
