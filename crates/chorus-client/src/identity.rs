//! Registration, the directory, session tokens and invites.

use crate::http::{ApiCall, encode_segment};
use crate::route_templates::fill_parameter;
use crate::{Error, HubClient, Result, limits};
use chorus_wire::CARD_VERSION;
use chorus_wire::reply::{
    AgentDeleted, AgentRecord, ConsoleLink, DirectoryRow, EndpointSecret, InviteCard, InviteRecord,
    SessionToken,
};
use chorus_wire::{secret::Secret, time::UnixMicros, usage::UsageReport};
use serde::Deserialize;
use serde_json::{Map, json};

/// The fields of a registration.
#[derive(Clone, Debug)]
pub struct RegistrationRequest {
    pub agent_id: String,
    pub culture: String,
    pub languages: Vec<String>,
    pub endpoint: Option<String>,
    /// Signs what the hub posts to the endpoint.
    pub endpoint_secret: Option<Secret>,
    pub invite_code: Option<Secret>,
    /// The owner that has the account; without one the agent owns itself.
    pub owner_id: Option<String>,
    /// Where the hub posts jobs.
    pub api_endpoint: Option<String>,
}

impl RegistrationRequest {
    fn to_json(&self) -> String {
        let mut body = Map::new();
        body.insert("agent_id".into(), json!(self.agent_id));
        let card = json!({
            "card_version": CARD_VERSION,
            "user_culture": self.culture,
            "supported_languages": self.languages,
        });
        body.insert("agent_card".into(), card);
        if let Some(endpoint) = &self.endpoint {
            body.insert("endpoint".into(), json!(endpoint));
        }
        if let Some(secret) = &self.endpoint_secret {
            body.insert("endpoint_secret".into(), json!(secret.expose()));
        }
        if let Some(code) = &self.invite_code {
            body.insert("invite_code".into(), json!(code.expose()));
        }
        if let Some(owner_id) = &self.owner_id {
            body.insert("owner_id".into(), json!(owner_id));
        }
        if let Some(api_endpoint) = &self.api_endpoint {
            body.insert("api_endpoint".into(), json!(api_endpoint));
        }
        serde_json::Value::Object(body).to_string()
    }
}

/// The outcome of a registration.
#[derive(Clone, Debug)]
pub struct NewRegistration {
    pub agent_id: String,
    pub api_key: Option<Secret>,
}

/// What is read of the answer to a registration. The rest differs between hubs, and the key must not be lost because a field
/// that is not needed is missing.
#[derive(Deserialize)]
struct IssuedKey {
    agent_id: Option<String>,
    api_key: Option<Secret>,
}

impl HubClient {
    /// Registers an agent, or rotates the key of the caller. Retries have one `Idempotency-Key`: if the first request arrived,
    /// the hub gives its key again.
    pub async fn register_agent(&self, request: &RegistrationRequest) -> Result<NewRegistration> {
        let path = self.fetch_paths().await?.register.clone();
        let issued: IssuedKey = self
            .fetch_data_with_retry(ApiCall::post(path, request.to_json()))
            .await?;
        Ok(NewRegistration {
            agent_id: issued.agent_id.unwrap_or_else(|| request.agent_id.clone()),
            api_key: issued.api_key,
        })
    }

    /// The record of `name`; the agent itself also sees its endpoint.
    pub async fn fetch_record(&self, name: &str) -> Result<AgentRecord> {
        Ok(self.fetch_record_at(name).await?.0)
    }

    /// The record of `name`, and the time at which the hub answered, if it says so.
    pub async fn fetch_record_at(&self, name: &str) -> Result<(AgentRecord, Option<String>)> {
        let path = fill_parameter(&self.fetch_paths().await?.agent, &encode_segment(name));
        self.send_call(ApiCall::get(path)).await?.into_data()
    }

    /// All agents of the hub, page by page. A hub without the directory of document 002 lists records, which have the same
    /// fields (TRN-34, TRN-59).
    pub async fn list_directory(&self) -> Result<Vec<DirectoryRow>> {
        let mut rows: Vec<DirectoryRow> = Vec::new();
        let mut after = String::new();
        for _ in 0..limits::MAX_DIRECTORY_PAGES {
            let (page, next) = self.fetch_directory_page(&after).await?;
            let is_full = page.len() == limits::DIRECTORY_PAGE_SIZE;
            // A hub without paging returns the full list every time.
            let is_repeated = page
                .last()
                .is_some_and(|last| rows.iter().any(|row| row.agent_id == last.agent_id));
            if is_repeated {
                break;
            }
            rows.extend(page);
            // A hub without cursors continues after the last agent of a full page.
            let last_id = rows.last().filter(|_| is_full);
            match next.or(last_id.map(|row| encode_segment(&row.agent_id))) {
                Some(cursor) => after = format!("&after={cursor}"),
                None => break,
            }
        }
        Ok(rows)
    }

    /// A page and the encoded cursor of the next one.
    async fn fetch_directory_page(
        &self,
        after: &str,
    ) -> Result<(Vec<DirectoryRow>, Option<String>)> {
        let paths = self.fetch_paths().await?;
        let query = format!("?limit={}{after}", limits::DIRECTORY_PAGE_SIZE);
        let mut answer = self
            .send_call(ApiCall::get(format!("{}{query}", paths.directory)))
            .await?;
        if answer.status != 404 {
            let next = answer.next_cursor.take();
            return Ok((answer.into_bare_or_data()?, next));
        }
        let records: Vec<AgentRecord> = self
            .fetch_data(ApiCall::get(format!("{}{query}", paths.agents)))
            .await?;
        Ok((records.into_iter().map(directory_row).collect(), None))
    }

    pub async fn unregister_agent(&self, name: &str) -> Result<AgentDeleted> {
        let path = fill_parameter(&self.fetch_paths().await?.unregister, &encode_segment(name));
        self.fetch_data(ApiCall::delete(path)).await
    }

    /// A single-use token for clients that cannot set headers.
    pub async fn create_session_token(&self) -> Result<SessionToken> {
        let path = self.fetch_paths().await?.session.clone();
        self.fetch_data_with_retry(ApiCall::post(path, "{}".into()))
            .await
    }

    /// A single-use token that signs a browser in to the console of the hub.
    pub async fn create_console_link(&self) -> Result<ConsoleLink> {
        self.fetch_data_with_retry(ApiCall::post("/console/links", "{}".into()))
            .await
    }

    /// Makes the secret that signs what the hub posts to this agent's endpoints. It replaces the one before it.
    pub async fn create_endpoint_secret(&self) -> Result<EndpointSecret> {
        let path = self.fetch_paths().await?.endpoint_secret.clone();
        self.fetch_data_with_retry(ApiCall::post(path, "{}".into()))
            .await
    }

    /// What the owner of this agent uses of its quotas.
    pub async fn fetch_usage(&self) -> Result<UsageReport> {
        let path = self.fetch_paths().await?.usage.clone();
        self.fetch_data(ApiCall::get(path)).await
    }

    /// The invite card of `name`, as an invite link shows it (TRN-62).
    pub async fn fetch_invite_card(&self, name: &str) -> Result<InviteCard> {
        let path = format!(
            "{}/{}",
            self.fetch_paths().await?.invite,
            encode_segment(name)
        );
        self.fetch_data(ApiCall::get(path)).await
    }

    /// The link that a person or an agent opens to find `name` (TRN-61).
    pub async fn build_invite_link(&self, name: &str) -> Result<String> {
        let paths = self.fetch_paths().await?;
        let hub = paths.public_url.as_deref().unwrap_or(self.base_url());
        Ok(format!(
            "{}{}/{}",
            hub.trim_end_matches('/'),
            paths.invite,
            encode_segment(name)
        ))
    }

    /// Creates a registration code (operators only). The code is shown only in this answer.
    pub async fn create_invite(
        &self,
        label: &str,
        max_uses: Option<u64>,
        expires_at: Option<UnixMicros>,
    ) -> Result<InviteRecord> {
        let mut body = Map::new();
        body.insert("label".into(), json!(label));
        if let Some(uses) = max_uses {
            body.insert("max_uses".into(), json!(uses));
        }
        if let Some(at) = expires_at {
            body.insert("expires_at".into(), json!(at));
        }
        let path = self.fetch_paths().await?.invites.clone();
        let invite: InviteRecord = self
            .fetch_data_with_retry(ApiCall::post(
                path,
                serde_json::Value::Object(body).to_string(),
            ))
            .await?;
        if invite.code.is_none() {
            return Err(Error::Answer("a new invite came without its code".into()));
        }
        Ok(invite)
    }

    pub async fn list_invites(&self) -> Result<Vec<InviteRecord>> {
        let path = self.fetch_paths().await?.invites.clone();
        self.fetch_data(ApiCall::get(path)).await
    }

    /// Lets agents register without a code again (operators only).
    pub async fn open_registration(&self) -> Result<serde_json::Value> {
        let path = self.fetch_paths().await?.invites.clone();
        self.fetch_data(ApiCall::delete(path)).await
    }

    pub async fn revoke_invite(&self, id: &str) -> Result<InviteRecord> {
        let path = fill_parameter(
            &self.fetch_paths().await?.revoke_invite,
            &encode_segment(id),
        );
        self.fetch_data(ApiCall::delete(path)).await
    }
}

fn directory_row(record: AgentRecord) -> DirectoryRow {
    let card = record.agent_card.as_ref();
    DirectoryRow {
        culture: card.and_then(|card| card.user_culture()).map(str::to_owned),
        languages: card
            .map(|card| {
                card.supported_languages()
                    .into_iter()
                    .map(str::to_owned)
                    .collect()
            })
            .unwrap_or_default(),
        agent_id: record.agent_id,
        online: record.online,
        reach: record.reach,
        host_verified: record.host_verified,
    }
}
