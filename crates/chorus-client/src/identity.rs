//! Coming, going and looking around: registration, the directory, sessions and registration codes.

use crate::http::{Call, segment};
use crate::{Client, Error, Result, limits};
use chorus_wire::CARD_VERSION;
use chorus_wire::reply::{
    AgentRecord, Deleted, DirectoryRow, Invite, InviteCard, Registered, SessionToken,
};
use chorus_wire::{secret::Secret, time::Micros};
use serde_json::{Map, json};

/// What an agent says of itself when it registers.
#[derive(Clone, Debug)]
pub struct Newcomer {
    pub agent_id: String,
    pub culture: String,
    pub languages: Vec<String>,
    pub endpoint: Option<String>,
    pub invite_code: Option<Secret>,
}

impl Newcomer {
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
        if let Some(code) = &self.invite_code {
            body.insert("invite_code".into(), json!(code.expose()));
        }
        serde_json::Value::Object(body).to_string()
    }
}

impl Client {
    /// Not repeated on a broken connection: if the first try got through, the name is taken and its key is lost, and a
    /// second try would hide that behind another error.
    pub async fn register(&self, who: &Newcomer) -> Result<Registered> {
        let path = self.paths().await?.register.clone();
        self.data(Call::post(path, who.to_json())).await
    }

    /// The record of `name`; the agent itself also sees its endpoint.
    pub async fn record(&self, name: &str) -> Result<AgentRecord> {
        let path = format!("{}/{}", self.paths().await?.agents, segment(name));
        self.data(Call::get(path)).await
    }

    /// Everybody on the hub, page by page. A hub without the directory of 002 lists records, which say the same
    /// (TRN-34, TRN-59).
    pub async fn discover(&self) -> Result<Vec<DirectoryRow>> {
        let mut all: Vec<DirectoryRow> = Vec::new();
        for _ in 0..limits::DIRECTORY_PAGES {
            let page = self.directory_page(all.last()).await?;
            let full = page.len() == limits::DIRECTORY_PAGE;
            // A hub that does not know pages answers with everything, every time.
            let repeats = page
                .last()
                .is_some_and(|last| all.iter().any(|row| row.agent_id == last.agent_id));
            if !repeats {
                all.extend(page);
            }
            if !full || repeats {
                break;
            }
        }
        Ok(all)
    }

    async fn directory_page(&self, after: Option<&DirectoryRow>) -> Result<Vec<DirectoryRow>> {
        let paths = self.paths().await?;
        let after = after
            .map(|row| format!("&after={}", segment(&row.agent_id)))
            .unwrap_or_default();
        let query = format!("?limit={}{after}", limits::DIRECTORY_PAGE);
        let answer = self
            .ask(Call::get(format!("{}{query}", paths.directory)))
            .await?;
        if answer.status != 404 {
            return answer.bare();
        }
        let records: Vec<AgentRecord> = self
            .data(Call::get(format!("{}{query}", paths.agents)))
            .await?;
        Ok(records.into_iter().map(row).collect())
    }

    pub async fn unregister(&self, name: &str) -> Result<Deleted> {
        let path = format!("{}/{}", self.paths().await?.agents, segment(name));
        self.data(Call::delete(path)).await
    }

    /// A single-use token for readers that cannot set headers.
    pub async fn session(&self) -> Result<SessionToken> {
        let path = self.paths().await?.session.clone();
        self.data(Call::post(path, "{}".into())).await
    }

    /// What an invite link says to an agent (TRN-62).
    pub async fn invite_card(&self, name: &str) -> Result<InviteCard> {
        let path = format!("{}/{}", self.paths().await?.invite, segment(name));
        self.data(Call::get(path)).await
    }

    /// The link that a person or an agent opens to find `name` (TRN-61).
    pub async fn invite_link(&self, name: &str) -> Result<String> {
        let paths = self.paths().await?;
        let hub = paths.public_url.as_deref().unwrap_or(self.base());
        Ok(format!(
            "{}{}/{}",
            hub.trim_end_matches('/'),
            paths.invite,
            segment(name)
        ))
    }

    /// Operators: a new registration code. It is shown this once.
    pub async fn create_invite(
        &self,
        label: &str,
        max_uses: Option<u64>,
        expires_at: Option<Micros>,
    ) -> Result<Invite> {
        let mut body = Map::new();
        body.insert("label".into(), json!(label));
        if let Some(uses) = max_uses {
            body.insert("max_uses".into(), json!(uses));
        }
        if let Some(at) = expires_at {
            body.insert("expires_at".into(), json!(at));
        }
        let path = self.paths().await?.invites.clone();
        let made: Invite = self
            .data(Call::post(
                path,
                serde_json::Value::Object(body).to_string(),
            ))
            .await?;
        if made.code.is_none() {
            return Err(Error::Answer("a new invite came without its code".into()));
        }
        Ok(made)
    }

    pub async fn invites(&self) -> Result<Vec<Invite>> {
        let path = self.paths().await?.invites.clone();
        self.data(Call::get(path)).await
    }

    /// Lets agents register without a code again.
    pub async fn open_registration(&self) -> Result<serde_json::Value> {
        let path = self.paths().await?.invites.clone();
        self.data(Call::delete(path)).await
    }

    pub async fn revoke_invite(&self, id: &str) -> Result<Invite> {
        let path = format!("{}/{}", self.paths().await?.invites, segment(id));
        self.data(Call::delete(path)).await
    }
}

fn row(record: AgentRecord) -> DirectoryRow {
    let card = record.agent_card.as_ref();
    DirectoryRow {
        culture: card.and_then(|card| card.culture()).map(str::to_owned),
        languages: card
            .map(|card| card.languages().into_iter().map(str::to_owned).collect())
            .unwrap_or_default(),
        agent_id: record.agent_id,
        online: record.online,
    }
}
